"""Collections: the schema that a segment's keys have in Milvus, written, checked and dropped."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import numpy as np
import xxhash

from qkvsearch.engines.milvus.connection import connect, told
from qkvsearch.errors import WorkspaceError
from qkvsearch.retrieval.keys import K1, length_norms

# The fields beside those of dense heads and columns.
ROW, LEXICAL = "row", "lexical"
# Columns go by their places, since an owner's name need not be one that Milvus takes.
COLUMN = "c{}"
KINDS = {"INTEGER": "INT64", "REAL": "DOUBLE", "TEXT": "VARCHAR"}
# Text of more bytes is read, not compared: a column that has any is left out.
LONGEST_CELL = 512
# Rows that are written at a time: some MB, well below what one call may take.
ROWS_AT_A_TIME = 1000
# The index of dense heads that leaves none out.
EXACT = "FLAT"
# Sparse vectors have so many dimensions; the first one is for items without any word.
DIMENSIONS, NO_WORD = 2**32 - 2, 0


def dimension(term: bytes) -> int:
    """The dimension of a term. Two that share one, which happens to few, are both found.

    >>> dimension(b"sea") == dimension(b"sea"), dimension(b"sea") > 0
    (True, True)
    """
    return 1 + xxhash.xxh32_intdigest(term) % (DIMENSIONS - 1)


class Column(NamedTuple):
    """A catalog's column as a scalar field. name: as it is stored. kind: the type of its field."""

    field: str
    name: str
    kind: str


@dataclass(frozen=True)
class SegmentKeys:
    """What a segment has to write. heads: the keys (n, d) of each dense head, arrays or what is
    read in blocks as such. words: the arrays of the lexical head by name. catalog: its file.
    """

    heads: Mapping[str, Any]
    words: Mapping[str, np.ndarray]
    catalog: Path

    @property
    def n_rows(self) -> int:
        return len(next(iter(self.heads.values())))


def write(uri: str, name: str, keys: SegmentKeys, index: str) -> None:
    """A new collection with all of it, loaded and ready to answer. index: the type of those of
    dense heads, "" for the exact one. Raises `WorkspaceError`, and then leaves none.
    """
    client = connect(uri, make=True)
    with told(uri, f"cannot write the collection {name}"):
        if client.has_collection(name):
            raise WorkspaceError(f"{uri}: the collection {name} is there already; try again")
    try:
        with told(uri, f"cannot write the collection {name}"):
            _write(client, name, keys, index)
    except BaseException:
        with suppress(Exception):
            client.drop_collection(name)
        raise


def _write(client: Any, name: str, keys: SegmentKeys, index: str) -> None:
    with closing(_opened(keys.catalog)) as db:
        columns = list(_columns(db))
        widths = {head: int(rows.shape[1]) for head, rows in keys.heads.items()}
        _create(client, name, index, widths, columns)
        sparse = _sparse(keys.words, keys.n_rows)
        cells = _cells(db, columns)
        for start in range(0, keys.n_rows, ROWS_AT_A_TIME):
            stop = min(start + ROWS_AT_A_TIME, keys.n_rows)
            blocks = {head: np.asarray(rows[start:stop]) for head, rows in keys.heads.items()}
            rows = [
                {ROW: row, LEXICAL: next(sparse), **next(cells)}
                | {head: block[row - start] for head, block in blocks.items()}
                for row in range(start, stop)
            ]
            client.upsert(name, rows)
    client.flush(name)
    client.load_collection(name)


def drop_others(uri: str, prefix: str, kept: set[str]) -> None:
    """Drop the collections whose names begin so, but for those that are kept."""
    client = connect(uri)
    with told(uri, "cannot drop the keys of former builds"):
        for name in client.list_collections():
            if name.startswith(prefix) and name not in kept:
                client.drop_collection(name)


def check(uri: str, name: str, n_rows: int, widths: Mapping[str, int]) -> None:
    """Raise `WorkspaceError` where a collection is gone, or is not the one that was written."""
    client = connect(uri)
    with told(uri, f"cannot read the collection {name}"):
        again = "build the workspace again, or return to another build with rollback"
        if not client.has_collection(name):
            raise WorkspaceError(
                f"{uri}: the collection {name}, with keys of this build, is not there: {again}"
            )
        fields = {field["name"]: field for field in client.describe_collection(name)["fields"]}
        for head, width in widths.items():
            there = fields.get(head, {}).get("params", {}).get("dim")
            if there is None or int(there) != width:
                what = "no such field" if there is None else f"{there} components"
                raise WorkspaceError(
                    f"{uri}: the collection {name} is not the one that was written: of {head} it "
                    f"has {what}, not {width} components; {again}"
                )
        there = int(client.get_collection_stats(name)["row_count"])
        if there < n_rows:
            raise WorkspaceError(
                f"{uri}: the collection {name} has {there:,} rows of {n_rows:,}; {again}"
            )
        client.load_collection(name)


def fields_of(uri: str, name: str) -> dict[str, str]:
    """The types of a collection's fields, by their names."""
    with told(uri, f"cannot read the collection {name}"):
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
    schema.add_field(LEXICAL, DataType.SPARSE_FLOAT_VECTOR)
    index.add_index(LEXICAL, index_type="SPARSE_INVERTED_INDEX", metric_type="IP")
    for column in columns:
        kind = getattr(DataType, column.kind)
        longest = {"max_length": LONGEST_CELL} if column.kind == "VARCHAR" else {}
        schema.add_field(column.field, kind, nullable=True, **longest)
    client.create_collection(name, schema=schema, index_params=index, consistency_level="Strong")


# --- what rows are made of ---


def quoted(name: str) -> str:
    """A column's name in SQL."""
    return '"' + name.replace('"', '""') + '"'


def _opened(catalog: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"file:{quote(str(catalog))}?mode=ro&immutable=1", uri=True)


def _columns(db: sqlite3.Connection) -> Iterator[Column]:
    """Those of the catalog that can be compared there: numbers, and texts of which none is long."""
    described = db.execute("PRAGMA table_info(items)").fetchall()
    for place, (_, name, sql_type, *_rest) in enumerate(described[1:]):
        kind = KINDS[sql_type]
        if kind == "VARCHAR":
            longest = f"SELECT max(length(CAST({quoted(name)} AS BLOB))) FROM items"
            if (db.execute(longest).fetchone()[0] or 0) > LONGEST_CELL:
                continue
        yield Column(COLUMN.format(place), name, kind)


def _cells(db: sqlite3.Connection, columns: Sequence[Column]) -> Iterator[dict[str, Any]]:
    """Of each row the cells by the fields, None where blank."""
    names = ", ".join(["_position", *(quoted(column.name) for column in columns)])
    for _, *cells in db.execute(f"SELECT {names} FROM items ORDER BY _position"):
        yield {column.field: cell for column, cell in zip(columns, cells, strict=True)}


def _sparse(words: Mapping[str, np.ndarray], n_rows: int) -> Iterator[dict[int, float]]:
    """Of each row what BM25 makes of its words but for idf, which a query brings along: it changes
    with the items that there are.
    """
    from scipy.sparse import csc_matrix

    counts = words["counts"].astype(np.float32)
    norms = length_norms(words["lengths"])[words["indices"]]
    weights = counts * np.float32(K1 + 1) / (counts + norms)
    shape = n_rows, len(words["terms"])
    by_row = csc_matrix((weights, words["indices"], words["indptr"]), shape).tocsr()
    numbers = np.array([dimension(term) for term in words["terms"].tolist()], np.int64)
    for start, stop in pairwise(by_row.indptr.tolist()):
        terms = numbers[by_row.indices[start:stop]].tolist()
        row = dict(zip(terms, by_row.data[start:stop].tolist(), strict=True))
        yield row or {NO_WORD: 1.0}
