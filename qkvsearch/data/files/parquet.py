"""Parquet, some rows at a time, to frames of text or to an encoded table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from qkvsearch.data.files import scratch
from qkvsearch.data.files.encoding import ColumnEncoder, TableEncoder
from qkvsearch.data.files.frames import as_text, check_width, distinct, without_long_cells
from qkvsearch.data.files.unpacking import Place
from qkvsearch.data.report import ReadReport
from qkvsearch.errors import DataError, need
from qkvsearch.limits import CELL, Limit

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

    def __len__(self) -> int:
        return len(self.arrays[0]) if self.arrays else 0

    @property
    def numbers(self) -> np.ndarray:
        return np.arange(self.first, self.first + len(self))

    def frame(self) -> pd.DataFrame:
        """Cells of text."""
        # With gaps as objects: as floats, long numbers would not be exact.
        cells = [array.to_pandas(integer_object_nulls=True) for array in self.arrays]
        columns = [column.astype(object).set_axis(range(len(self))) for column in cells]
        frame = pd.concat(columns, axis=1) if columns else pd.DataFrame(index=range(len(self)))
        return as_text(frame.set_axis(list(self.names), axis=1)).set_axis(self.numbers)

    def encode(self, encoder: TableEncoder) -> None:
        """Add the rows to an encoded table."""
        if any(map(_may_have_long_cells, self.arrays)):
            return encoder.add(without_long_cells(self.frame(), self.report))
        for name, array in zip(self.names, self.arrays, strict=True):
            _encode(encoder.encoder(name), array)
        encoder.add_rows(self.numbers)


def read_parquet(place: Place, most: Limit) -> Iterator[tuple[ArrowPiece, ReadReport]]:
    """At least one piece. Raises `DataError`."""
    parquet = need("pyarrow.parquet", "parquet", f"{place.label}: reading Parquet", error=DataError)
    report = ReadReport(place.name)
    try:
        with parquet.ParquetFile(place.path) as file:
            # A file of a few bytes may say that it has any number of rows.
            most.check(file.metadata.num_rows, place.label)
            schema = file.schema_arrow
            kept = [i for i, name in enumerate(schema.names) if name not in _indexes(schema)]
            check_width(len(kept), place.label)
            names = distinct([schema.names[i] for i in kept])
            batches = file.iter_batches(scratch.ROWS_AT_ONCE, use_threads=False)
            for batch in batches:
                arrays = [batch.column(i) for i in kept]
                first = report.read + 1
                report.read += batch.num_rows
                yield ArrowPiece(names, arrays, first, report), report
            if not report.read:
                empty = schema.empty_table().combine_chunks()
                arrays = [empty.column(i).combine_chunks() for i in kept]
                yield ArrowPiece(names, arrays, 1, report), report
    except DataError:
        raise
    except (OSError, ValueError, NotImplementedError) as error:
        raise DataError(f"{place.label}: not a Parquet file: {error}") from None


def _indexes(schema: Any) -> set[str]:
    """The columns that are the index of the frame that was written, which no frame read has."""
    told = (schema.pandas_metadata or {}).get("index_columns", [])
    return {name for name in told if isinstance(name, str)}


def _may_have_long_cells(array: Any) -> bool:
    from pyarrow import compute, types

    if array.nbytes <= CELL.most or types.is_primitive(array.type):
        return False
    if types.is_nested(array.type) or types.is_dictionary(array.type):
        return True
    return bool((compute.max(compute.binary_length(array)).as_py() or 0) > CELL.most)


def _encode(column: ColumnEncoder, array: Any) -> None:
    import pyarrow.types as types

    kind, filled = array.type, array.is_valid().to_numpy(zero_copy_only=False)
    if types.is_integer(kind) and kind != "uint64":
        values = array.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64, copy=False)
        return column.add_numbers(values, filled)
    if types.is_float64(kind):
        values = array.to_numpy(zero_copy_only=False)
        return column.add_numbers(values, filled & ~np.isnan(values))
    if types.is_timestamp(kind):
        values = array.cast("int64").fill_null(0).to_numpy(zero_copy_only=False)
        zone = f", {kind.tz}" if kind.tz else ""
        return column.add_numbers(values, filled, f"datetime64[{kind.unit}{zone}]")
    if types.is_nested(kind) or types.is_dictionary(kind):
        cells, codes = array, None
    else:
        coded = array.dictionary_encode()
        cells, codes = coded.dictionary, coded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    texts = as_text(pd.DataFrame({"cells": cells.to_pandas().astype(object)}))["cells"]
    of_cell, different = pd.factorize(texts)
    places = of_cell if codes is None else np.append(of_cell, -1)[codes]
    column.add_texts(places, list(different))
