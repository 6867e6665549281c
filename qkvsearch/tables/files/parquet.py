"""Parquet, batch by batch, to an encoded table."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from qkvsearch._utils.limits import CELL, CELL_BYTES, Limit, check_unpacked
from qkvsearch.errors import DataError, need
from qkvsearch.tables.column_facts import LIST_SEPARATOR
from qkvsearch.tables.files.file_format import BinaryFormat
from qkvsearch.tables.files.parquet_pages import (
    column_chunks,
    is_read_as_dictionary,
    pages_of,
    shared_size,
)
from qkvsearch.tables.files.unpacking import TableFile
from qkvsearch.tables.frames import (
    BATCH_BYTES,
    TOO_LONG,
    as_text,
    check_names,
    check_width,
    distinct,
    rows_at_once,
)
from qkvsearch.tables.report import ReadReport
from qkvsearch.tables.table import ColumnBuilder, TableBuilder

if TYPE_CHECKING:
    import pyarrow as pa

MARK = b"PAR1"
# What pandas calls an index that has no name.
UNNAMED_INDEX = re.compile(r"__index_level_\d+__")


def read_parquet(file: TableFile, limit: Limit, encoder: TableBuilder) -> ReadReport:
    """Add the rows of a file to an encoded table. Raises `DataError`.

    Texts are read as dictionaries, so that a text that many rows share is in memory once.
    """
    parquet = need("pyarrow.parquet", "parquet", f"{file.label}: reading Parquet", error=DataError)
    report = ReadReport(file.name)
    with _readable(file.label):
        metadata = parquet.read_metadata(file.path)
        # A file of a few bytes may have any number of rows.
        limit.check(metadata.num_rows, file.label)
        check_width(len(metadata.schema.to_arrow_schema().names), file.label)
        rows, texts = _plan(file, metadata)
        with parquet.ParquetFile(file.path, read_dictionary=texts) as content:
            schema = content.schema_arrow
            unnamed = _unnamed_indexes(schema)
            indices = [i for i, name in enumerate(schema.names) if name not in unnamed]
            # An index is written behind the columns, and read before them.
            indexes = _indexes(schema)
            indices.sort(key=lambda i: schema.names[i] not in indexes)
            names = distinct([_own_name(schema.names[i]) for i in indices])
            check_names(names, file.label)
            empty = schema.empty_table().combine_chunks()
            _add(encoder, names, [empty.column(i).combine_chunks() for i in indices], report)
            size = 0
            groups = range(metadata.num_row_groups)
            batches = (content.iter_batches(rows, [group], use_threads=False) for group in groups)
            for batch in chain.from_iterable(batches):
                limit.check(encoder.n_rows + batch.num_rows, file.label)
                batch.validate(full=True)
                arrays = [batch.column(i) for i in indices]
                _note_nested(names, arrays, report)
                batch_size = sum(map(_size, arrays))
                size += batch_size
                check_unpacked(size, file.size, file.label)
                step = max(1, batch.num_rows // (batch_size // BATCH_BYTES + 1))
                for start in range(0, batch.num_rows, step):
                    _add(encoder, names, [array.slice(start, step) for array in arrays], report)
    return report


def _add(
    encoder: TableBuilder, names: Sequence[str], arrays: Sequence[pa.Array], report: ReadReport
) -> None:
    """Add the next rows to an encoded table, without those that have too long cells."""
    import pyarrow as pa

    rows = np.arange(report.read + 1, report.read + 1 + len(arrays[0])) if arrays else np.empty(0)
    report.read += len(rows)
    coded = [None if _is_number(array) else _coded(array) for array in arrays]
    too_long = np.zeros(len(rows), dtype=bool)
    for codes, texts in filter(None, coded):
        too_long |= np.array([*map(len, texts), 0])[codes] > CELL.value
    if too_long.any():
        report.skip(TOO_LONG, rows[too_long])
        rows, arrays = rows[~too_long], [array.filter(pa.array(~too_long)) for array in arrays]
        coded = [
            None if column is None else _coded(array)
            for column, array in zip(coded, arrays, strict=True)
        ]
    for name, array, column in zip(names, arrays, coded, strict=True):
        if column is None:
            _add_numbers(encoder.encoder(name), array)
        else:
            encoder.encoder(name).add_texts(*column)
    encoder.add_rows(rows)


@contextmanager
def _readable(label: str) -> Iterator[None]:
    """Raise a `DataError` that names the file for any error in it."""
    try:
        yield
    except DataError:
        raise
    except MemoryError:
        raise DataError(f"{label}: not enough memory to read it") from None
    except Exception as error:  # a damaged file fails wherever the library first notices
        reason = "something is missing in it" if isinstance(error, LookupError) else str(error)
        raise DataError(f"{label}: not a Parquet file, or damaged: {reason}") from None


def _indexes(schema: Any) -> set[str]:
    """Return the columns that were the index of a pandas frame."""
    columns = (schema.pandas_metadata or {}).get("index_columns", [])
    return {name for name in columns if isinstance(name, str) and name in schema.names}


def _unnamed_indexes(schema: Any) -> set[str]:
    """Return the columns that were an index of a pandas frame without a name, and count its rows.
    An index with a name is a column, and so is one of texts, such as ids.
    """
    from pyarrow import types

    unnamed = {name for name in _indexes(schema) if UNNAMED_INDEX.fullmatch(name)}
    return {name for name in unnamed if types.is_integer(schema.field(name).type)}


def _own_name(name: str) -> str:
    """Return the name of a column; "index" for an index without one."""
    return "index" if UNNAMED_INDEX.fullmatch(name) else name


def _plan(file: TableFile, metadata: Any) -> tuple[int, list[str]]:
    """Return how many rows can be decoded at a time, and which columns as dictionaries.

    Each cell takes as many bytes as its type has; a text of a dictionary counts once. Raises
    `DataError` where all pages take too many bytes.
    """
    size = together = cells = 0
    texts = []
    n_rows = sum(metadata.row_group(j).num_rows for j in range(metadata.num_row_groups))
    arrow = metadata.schema.to_arrow_schema()
    sizes = [size for field in arrow for size in _list_sizes(field.type)]
    with file.path.open("rb") as stream:
        groups = column_chunks(stream)
        for j in range(metadata.num_columns):
            leaf, chunks = metadata.schema.column(j), [group[j] for group in groups]
            width = max(CELL_BYTES, leaf.length or 0)
            pages, n_values = [], 0
            for chunk in chunks:
                pages.append(list(pages_of(stream, chunk)))
                size += sum(page.size + width * page.n_values for page in pages[-1])
                n_values += sum(page.n_values for page in pages[-1] if not page.is_dictionary)
                check_unpacked(size, file.size, file.label)
            # A list of a fixed size that is empty is one value in the file, and in memory as many
            # cells as any other.
            n_cells = max(n_values, (n_values if sizes[j].repeated else n_rows) * sizes[j].n_cells)
            size += width * (n_cells - n_values)
            cells += n_cells
            check_unpacked(size, file.size, file.label)
            if leaf.physical_type != "BYTE_ARRAY":
                continue
            if leaf.logical_type.type != "DECIMAL" and all(
                is_read_as_dictionary(each, is_nested=leaf.path != leaf.name) for each in pages
            ):
                texts.append(leaf.path)
                continue
            # Of others, a text may be as long as its page, and all those of a list are decoded at
            # a time.
            together += max(page.size for each in pages for page in each)
            if leaf.max_repetition_level:
                for chunk, each in zip(chunks, pages, strict=True):
                    size += shared_size(stream, chunk, each)
                check_unpacked(size, file.size, file.label)
    rows = rows_at_once(cells // max(1, n_rows))
    return min(rows, max(1, 4 * BATCH_BYTES // max(1, together))), texts


class _ListSize(NamedTuple):
    """The number of cells of a list of fixed sizes, and whether such lists are in other lists."""

    n_cells: int
    repeated: bool


def _list_sizes(kind: Any, n_cells: int = 1, repeated: bool = False) -> list[_ListSize]:
    """Return the size of the lists that each column of a file belongs to, for a column of a table.

    The columns of a file are the innermost types of those of its table, in their order.
    """
    from pyarrow import types

    if _is_extension(kind):
        return _list_sizes(kind.storage_type, n_cells, repeated)
    if types.is_struct(kind):
        return [size for field in kind for size in _list_sizes(field.type, n_cells, repeated)]
    if types.is_fixed_size_list(kind):
        return _list_sizes(kind.value_type, n_cells * kind.list_size, repeated)
    if types.is_map(kind):
        inner = kind.key_type, kind.item_type
        return [size for each in inner for size in _list_sizes(each, n_cells, True)]
    if types.is_nested(kind):
        return _list_sizes(kind.value_type, n_cells, True)
    return [_ListSize(n_cells, repeated)]


def _note_nested(names: Sequence[str], arrays: Sequence[Any], report: ReadReport) -> None:
    from pyarrow import types

    for name, array in zip(names, arrays, strict=True):
        if types.is_nested(array.type) and array.null_count < len(array):
            row = int(array.is_valid().to_numpy(zero_copy_only=False).argmax())
            report.nested.setdefault(name, report.read + row + 1)
            report.note_separators(name, _n_separators(array))


def _n_separators(array: Any) -> int:
    """Return how many entries of lists have the sign that is between entries."""
    from pyarrow import compute, types

    kind = array.type
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        entries = array.flatten()
        if types.is_dictionary(entries.type):
            entries = entries.dictionary_decode()
        if types.is_string(entries.type) or types.is_large_string(entries.type):
            return compute.sum(compute.match_substring(entries, LIST_SEPARATOR)).as_py() or 0
        return _n_separators(entries)
    return 0


def _size(array: Any) -> int:
    """Return how many bytes the cells of an array take as text."""
    from pyarrow import compute, types

    kind, size = array.type, CELL_BYTES * len(array)
    if _is_extension(kind):
        return _size(array.storage)
    if types.is_dictionary(kind):
        codes = array.indices.drop_null().to_numpy(zero_copy_only=False)
        lengths = compute.binary_length(array.dictionary.cast("binary")).fill_null(0)
        used = np.bincount(codes, minlength=len(lengths))
        return size + int(used @ lengths.to_numpy(zero_copy_only=False))
    if types.is_struct(kind):
        return size + sum(map(_size, array.flatten()))
    if types.is_map(kind):
        start, end = (array.offsets[at].as_py() for at in (0, -1))
        return size + sum(
            _size(child.slice(start, end - start)) for child in (array.keys, array.items)
        )
    if types.is_nested(kind):
        return size + _size(array.flatten())
    return size + int(array.nbytes)


def _is_extension(kind: Any) -> bool:
    import pyarrow as pa

    return isinstance(kind, pa.BaseExtensionType)


def _is_number(array: Any) -> bool:
    import pyarrow.types as types

    kind = array.type
    is_whole = types.is_integer(kind) and kind != "uint64"
    return is_whole or types.is_float64(kind) or types.is_timestamp(kind)


def _add_numbers(column: ColumnBuilder, array: Any) -> None:
    import pyarrow.types as types

    kind, filled = array.type, array.is_valid().to_numpy(zero_copy_only=False)
    if types.is_float64(kind):
        values = array.to_numpy(zero_copy_only=False)
        return column.add_numbers(values, filled & ~np.isnan(values))
    values = array.cast("int64").fill_null(0).to_numpy(zero_copy_only=False)
    if types.is_integer(kind):
        return column.add_numbers(values, filled)
    zone = f", {kind.tz}" if kind.tz else ""
    return column.add_numbers(values, filled, f"datetime64[{kind.unit}{zone}]")


def _coded(array: Any) -> tuple[np.ndarray, list[str]]:
    """Return the number of each cell, −1 where it is empty, and the texts of the numbers."""
    import pyarrow as pa

    kind = array.type
    if pa.types.is_null(kind):
        return np.full(len(array), -1), []
    if pa.types.is_nested(kind) or _is_extension(kind):
        cells, codes = array, np.arange(len(array))
    else:
        coded = array if pa.types.is_dictionary(kind) else array.dictionary_encode()
        codes = coded.indices.cast("int64").fill_null(-1).to_numpy(zero_copy_only=False)
        used = np.unique(codes[codes >= 0])
        cells = coded.dictionary.take(pa.array(used))
        codes = np.where(codes < 0, -1, np.searchsorted(used, codes))
    texts = as_text(pd.DataFrame({"cells": cells.to_pandas().astype(object)}))["cells"]
    text_codes, distinct_texts = pd.factorize(texts)
    return np.append(text_codes, -1)[codes], list(distinct_texts)


PARQUET = BinaryFormat(
    name="Parquet",
    recognized_by="its first bytes, or `.parquet`",
    notes="needs `pip install 'qkvsearch[parquet]'`",
    fits=lambda file, start: start.startswith(MARK) or file.suffix == ".parquet",
    add=read_parquet,
)
