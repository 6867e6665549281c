"""Collections: a segment's keys and columns in Milvus, written, checked and dropped."""

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import numpy as np

from qkvsearch.data.catalog_columns import quoted
from qkvsearch.engines.milvus.connection import connect, one_line_errors
from qkvsearch.errors import WorkspaceError

# The field beside those of dense heads and columns.
ROW = "row"
# Fields of columns are numbered, since not every name of a column is a name in Milvus.
COLUMN = "c{}"
KINDS = {"INTEGER": "INT64", "REAL": "DOUBLE", "TEXT": "VARCHAR"}
# A column with a text of more bytes has no field.
MAX_CELL_BYTES = 512
# Rows that are written at a time: some MB, well below the limit of one call.
ROWS_PER_WRITE = 1000
# The index of dense heads that misses no item.
EXACT = "FLAT"


class Column(NamedTuple):
    """A catalog's column as a scalar field. name: of the stored column. kind: type of the field."""

    field: str
    name: str
    kind: str


@dataclass(frozen=True)
class SegmentKeys:
    """The rows of a segment to be written.

    heads: the keys of each dense head, (n, d), arrays or what can be read in blocks like one.
    catalog: the segment's catalog file.
    """

    heads: Mapping[str, Any]
    catalog: Path

    @property
    def n_rows(self) -> int:
        return len(next(iter(self.heads.values())))


def write(uri: str, name: str, keys: SegmentKeys, index: str) -> None:
    """Write a new collection and load it. index: the type of the index of dense heads, "" for the
    exact one. Raises `WorkspaceError`, and then leaves no collection.
    """
    client = connect(uri, make=True)
    with one_line_errors(uri, f"cannot write the collection {name}"):
        if client.has_collection(name):
            raise WorkspaceError(f"{uri}: the collection {name} is there already; try again")
    try:
        with one_line_errors(uri, f"cannot write the collection {name}"):
            _write(client, name, keys, index)
    except BaseException:
        with suppress(Exception):
            client.drop_collection(name)
        raise


def _write(client: Any, name: str, keys: SegmentKeys, index: str) -> None:
    with closing(_open(keys.catalog)) as db:
        columns = list(_columns(db))
        widths = {head: int(rows.shape[1]) for head, rows in keys.heads.items()}
        _create(client, name, index, widths, columns)
        cells = _cells(db, columns)
        for start in range(0, keys.n_rows, ROWS_PER_WRITE):
            stop = min(start + ROWS_PER_WRITE, keys.n_rows)
            blocks = {head: np.asarray(rows[start:stop]) for head, rows in keys.heads.items()}
            rows = [
                {ROW: row, **next(cells)}
                | {head: block[row - start] for head, block in blocks.items()}
                for row in range(start, stop)
            ]
            client.upsert(name, rows)
    client.flush(name)
    client.load_collection(name)


def drop_others(uri: str, prefix: str, needed: set[str]) -> None:
    """Drop the collections whose names begin with a prefix, except the needed ones."""
    client = connect(uri)
    with one_line_errors(uri, "cannot drop the keys of previous builds"):
        for name in client.list_collections():
            if name.startswith(prefix) and name not in needed:
                client.drop_collection(name)


def check(uri: str, name: str, n_rows: int, widths: Mapping[str, int]) -> None:
    """Raise `WorkspaceError` where a collection is missing or differs from the written one."""
    client = connect(uri)
    with one_line_errors(uri, f"cannot read the collection {name}"):
        advice = "build the workspace again, or return to another build with rollback"
        if not client.has_collection(name):
            raise WorkspaceError(
                f"{uri}: the collection {name}, with keys of this build, is not there: {advice}"
            )
        fields = {field["name"]: field for field in client.describe_collection(name)["fields"]}
        for head, width in widths.items():
            actual = fields.get(head, {}).get("params", {}).get("dim")
            if actual is None or int(actual) != width:
                what = "no such field" if actual is None else f"{actual} components"
                raise WorkspaceError(
                    f"{uri}: the collection {name} is not the one that was written: of {head} it "
                    f"has {what}, not {width} components; {advice}"
                )
        n_actual = int(client.get_collection_stats(name)["row_count"])
        if n_actual < n_rows:
            raise WorkspaceError(
                f"{uri}: the collection {name} has {n_actual:,} rows of {n_rows:,}; {advice}"
            )
        client.load_collection(name)


def fields_of(uri: str, name: str) -> dict[str, str]:
    """Return the types of a collection's fields by name."""
    with one_line_errors(uri, f"cannot read the collection {name}"):
        fields = connect(uri).describe_collection(name)["fields"]
    return {field["name"]: field["type"].name for field in fields}


def _create(
    client: Any, name: str, index_type: str, widths: Mapping[str, int], columns: Sequence[Column]
) -> None:
    from pymilvus import DataType

    schema = client.create_schema(auto_id=False, enable_dynamic_field=False)
    schema.add_field(ROW, DataType.INT64, is_primary=True)
    index = client.prepare_index_params()
    for head, width in widths.items():
        schema.add_field(head, DataType.FLOAT_VECTOR, dim=width)
        index.add_index(head, index_type=index_type or EXACT, metric_type="IP")
    for column in columns:
        kind = getattr(DataType, column.kind)
        longest = {"max_length": MAX_CELL_BYTES} if column.kind == "VARCHAR" else {}
        schema.add_field(column.field, kind, nullable=True, **longest)
    client.create_collection(name, schema=schema, index_params=index, consistency_level="Strong")


# --- the catalog's cells ---


def _open(catalog: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"file:{quote(str(catalog))}?mode=ro&immutable=1", uri=True)


def _columns(db: sqlite3.Connection) -> Iterator[Column]:
    """Yield the columns that Milvus can compare: numbers, and texts if none of them is long."""
    described = db.execute("PRAGMA table_info(items)").fetchall()
    for number, (_, name, sql_type, *_rest) in enumerate(described[1:]):
        kind = KINDS[sql_type]
        if kind == "VARCHAR":
            longest = f"SELECT max(length(CAST({quoted(name)} AS BLOB))) FROM items"
            if (db.execute(longest).fetchone()[0] or 0) > MAX_CELL_BYTES:
                continue
        yield Column(COLUMN.format(number), name, kind)


def _cells(db: sqlite3.Connection, columns: Sequence[Column]) -> Iterator[dict[str, Any]]:
    """Yield the cells of each row by field, None for a blank one."""
    names = ", ".join(["_position", *(quoted(column.name) for column in columns)])
    for _, *cells in db.execute(f"SELECT {names} FROM items ORDER BY _position"):
        yield {column.field: cell for column, cell in zip(columns, cells, strict=True)}
