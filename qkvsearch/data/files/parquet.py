"""Parquet, some rows at a time, to frames of text or to an encoded table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from qkvsearch._utils.limits import CELL, CELL_BYTES, Limit, check_unpacked
from qkvsearch.data.files.encoded import ColumnEncoder, TableEncoder
from qkvsearch.data.files.frames import (
    BATCH_BYTES,
    as_text,
    check_names,
    check_width,
    distinct,
    rows_at_once,
    text_lengths,
    without_long_cells,
)
from qkvsearch.data.files.parquet_pages import (
    column_chunks,
    is_read_as_dictionary,
    pages_of,
    shared_size,
)
from qkvsearch.data.files.unpacking import Place
from qkvsearch.data.report import ReadReport
from qkvsearch.errors import DataError, need

if TYPE_CHECKING:
    import pyarrow as pa

MARK = b"PAR1"


@dataclass(frozen=True)
class ArrowPiece:
    """Some rows; first: the number of the first of them, counted from 1."""

    names: Sequence[str]
    arrays: Sequence[pa.Array]
    first: int
    report: ReadReport
    label: str

    def __len__(self) -> int:
        return len(self.arrays[0]) if self.arrays else 0

    @property
    def numbers(self) -> np.ndarray:
        return np.arange(self.first, self.first + len(self))

    def frame(self) -> pd.DataFrame:
        """Return cells of text, without rows that have too long ones."""
        with _readable(self.label):
            columns = {
                name: pd.array(texts, dtype="str").take(codes, allow_fill=True)
                for name, (codes, texts) in zip(self.names, map(_coded, self.arrays), strict=True)
            }
            frame = pd.DataFrame(columns, index=self.numbers)
        return without_long_cells(frame, text_lengths(frame), self.report)

    def encode(self, encoder: TableEncoder) -> None:
        """Add the rows to an encoded table."""
        with _readable(self.label):
            coded = [None if _is_number(array) else _coded(array) for array in self.arrays]
            if any(len(text) > CELL.value for column in coded if column for text in column[1]):
                return encoder.add(self.frame())
            for name, array, column in zip(self.names, self.arrays, coded, strict=True):
                if column is None:
                    _add_numbers(encoder.encoder(name), array)
                else:
                    encoder.encoder(name).add_texts(*column)
        encoder.add_rows(self.numbers)


def read_parquet(place: Place, most: Limit) -> Iterator[tuple[ArrowPiece, ReadReport]]:
    """Read at least one piece. Raises `DataError`.

    Texts are read as dictionaries, so that a text that many rows share is in memory once.
    """
    parquet = need("pyarrow.parquet", "parquet", f"{place.label}: reading Parquet", error=DataError)
    report = ReadReport(place.name)
    with _readable(place.label):
        metadata = parquet.read_metadata(place.path)
        # A file of a few bytes may have any number of rows.
        most.check(metadata.num_rows, place.label)
        check_width(len(metadata.schema.to_arrow_schema().names), place.label)
        rows, texts = _plan(place, metadata)
        with parquet.ParquetFile(place.path, read_dictionary=texts) as file:
            schema = file.schema_arrow
            kept = [i for i, name in enumerate(schema.names) if name not in _indexes(schema)]
            names = distinct([schema.names[i] for i in kept])
            check_names(names, place.label)
            size = 0
            groups = range(metadata.num_row_groups)
            batches = (file.iter_batches(rows, [group], use_threads=False) for group in groups)
            for batch in chain.from_iterable(batches):
                most.check(report.read + batch.num_rows, place.label)
                batch.validate(full=True)
                arrays = [batch.column(i) for i in kept]
                _note_nested(names, arrays, report)
                now = sum(map(_size, arrays))
                size += now
                check_unpacked(size, place.size, place.label)
                step = max(1, batch.num_rows // (now // BATCH_BYTES + 1))
                for start in range(0, batch.num_rows, step):
                    some = [array.slice(start, step) for array in arrays]
                    first = report.read + 1
                    report.read += min(step, batch.num_rows - start)
                    yield ArrowPiece(names, some, first, report, place.label), report
            if not report.read:
                empty = schema.empty_table().combine_chunks()
                arrays = [empty.column(i).combine_chunks() for i in kept]
                yield ArrowPiece(names, arrays, 1, report, place.label), report


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
    """The columns that are the index of the frame that was written, which no frame read has."""
    told = (schema.pandas_metadata or {}).get("index_columns", [])
    return {name for name in told if isinstance(name, str)}


def _plan(place: Place, metadata: Any) -> tuple[int, list[str]]:
    """Return how many rows can be decoded at a time, and which columns as dictionaries.

    Each cell takes as many bytes as its type has; a text of a dictionary counts once. Raises
    `DataError` where all pages take too many bytes.
    """
    size = together = cells = 0
    texts = []
    n_rows = sum(metadata.row_group(j).num_rows for j in range(metadata.num_row_groups))
    arrow = metadata.schema.to_arrow_schema()
    sizes = [size for field in arrow for size in _list_sizes(field.type)]
    with place.path.open("rb") as file:
        groups = column_chunks(file)
        for j in range(metadata.num_columns):
            leaf, chunks = metadata.schema.column(j), [group[j] for group in groups]
            width = max(CELL_BYTES, leaf.length or 0)
            pages, n_values = [], 0
            for chunk in chunks:
                pages.append(list(pages_of(file, chunk)))
                size += sum(page.size + width * page.n_values for page in pages[-1])
                n_values += sum(page.n_values for page in pages[-1] if not page.is_dictionary)
                check_unpacked(size, place.size, place.label)
            # A list of a fixed size that is empty is one value in the file, and in memory as many
            # cells as any other.
            n_cells = max(n_values, (n_values if sizes[j].repeated else n_rows) * sizes[j].n_cells)
            size += width * (n_cells - n_values)
            cells += n_cells
            check_unpacked(size, place.size, place.label)
            if leaf.physical_type != "BYTE_ARRAY":
                continue
            if leaf.logical_type.type != "DECIMAL" and all(
                is_read_as_dictionary(some, is_nested=leaf.path != leaf.name) for some in pages
            ):
                texts.append(leaf.path)
                continue
            # Of others, a text may be as long as its page, and all those of a list are decoded at
            # a time.
            together += max(page.size for some in pages for page in some)
            if leaf.max_repetition_level:
                for chunk, some in zip(chunks, pages, strict=True):
                    size += shared_size(file, chunk, some)
                check_unpacked(size, place.size, place.label)
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
            _size(part.slice(start, end - start)) for part in (array.keys, array.items)
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


def _add_numbers(column: ColumnEncoder, array: Any) -> None:
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
    of_cell, different = pd.factorize(texts)
    return np.append(of_cell, -1)[codes], list(different)
