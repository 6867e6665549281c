"""A file of recommendations, as Parquet, CSV or JSON Lines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from qkvsearch._utils.files import replacing
from qkvsearch.data.ids import id_text
from qkvsearch.data.writers import CsvLines, require_pyarrow, said_of_guarded, to_jsonl
from qkvsearch.errors import QkvError

# Columns by name, all of one length.
Table = Mapping[str, Sequence[Any]]

FORMATS = ("parquet", "csv", "jsonl")
MIXED_USERS = "The user column is text, because some recorded ids are not whole numbers."


def check_format(path: Path, form: str | None) -> str:
    """Return "parquet", "csv" or "jsonl", as given or by the file's name. Raises `QkvError`."""
    form = form or path.suffix.lower().removeprefix(".")
    if form not in FORMATS:
        raise QkvError(f"{path}: all users go to a .parquet, .csv or .jsonl file, not {form!r}")
    if form == "parquet":
        require_pyarrow(path)
    return form


def write_tables(
    path: Path,
    form: str | None,
    types: Mapping[str, str],
    tables: Iterable[Table],
    raw: bool = False,
) -> list[str]:
    """Write tables one below another to a file, which is there when all of it is. types: of the
    columns, in SQL. raw: in CSV, no apostrophe before formulas. Return notes.
    """
    form, csv = check_format(path, form), CsvLines(list(types), raw)
    if path.is_dir() or not path.parent.is_dir():
        raise QkvError(f"{path}: is a folder, or its folder does not exist")
    with replacing(path) as file:
        if form == "parquet":
            import pyarrow.parquet as pq

            with pq.ParquetWriter(file, arrow_schema(types)) as writer:
                for table in tables:
                    writer.write_table(arrow_table(table, types))
        else:
            if form == "csv":
                file.write(csv.heading().encode())
            for table in tables:
                rows = zip(*(table[name] for name in types), strict=True)
                lines = (
                    csv.text(rows)
                    if form == "csv"
                    else to_jsonl(dict(zip(types, row, strict=True)) for row in rows)
                )
                file.write(lines.encode())
    guarded = said_of_guarded(csv.guarded)
    return [f"{guarded}; `raw` writes all cells as they are, for programs."] if guarded else []


def arrow_schema(sql_types: Mapping[str, str]) -> Any:
    """Return the Arrow types of columns with these types in SQL."""
    import pyarrow as pa

    kinds = {"INTEGER": pa.int64(), "REAL": pa.float64(), "TEXT": pa.string()}
    types = {name: kinds[kind] for name, kind in sql_types.items()}
    return pa.schema(list((types | {"rank": pa.int32(), "score": pa.float32()}).items()))


def arrow_table(table: Table, sql_types: Mapping[str, str]) -> Any:
    """Return columns with these types in SQL as an Arrow table."""
    import pyarrow as pa

    columns = dict(table)
    for name, kind in sql_types.items():
        if kind == "TEXT":  # ids of users may be numbers and texts
            columns[name] = [None if cell is None else id_text(cell) for cell in table[name]]
    return pa.table(columns, arrow_schema(sql_types))
