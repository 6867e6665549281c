"""Collections: a segment's keys in Milvus, written, checked and dropped."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import numpy as np

from qkvsearch.engines.milvus.connection import connect, one_line_errors
from qkvsearch.errors import WorkspaceError

# The field beside those of dense heads.
ROW = "row"
# Rows that are written at a time: some MB, well below the limit of one call.
ROWS_PER_WRITE = 1000
# The index of dense heads that misses no item.
EXACT = "FLAT"


def write(uri: str, name: str, heads: Mapping[str, Any], index: str) -> None:
    """Write a new collection and load it. heads: the keys of each dense head, (n, d), arrays or
    what can be read in blocks like one. index: the type of the index of dense heads, "" for the
    exact one. Raises `WorkspaceError`, and then leaves no collection.
    """
    client = connect(uri, make=True)
    with one_line_errors(uri, f"cannot write the collection {name}"):
        if client.has_collection(name):
            raise WorkspaceError(f"{uri}: the collection {name} is there already; try again")
    try:
        with one_line_errors(uri, f"cannot write the collection {name}"):
            _write(client, name, heads, index)
    except BaseException:
        with suppress(Exception):
            client.drop_collection(name)
        raise


def _write(client: Any, name: str, heads: Mapping[str, Any], index: str) -> None:
    _create(client, name, index, {head: int(keys.shape[1]) for head, keys in heads.items()})
    n_rows = len(next(iter(heads.values())))
    for start in range(0, n_rows, ROWS_PER_WRITE):
        stop = min(start + ROWS_PER_WRITE, n_rows)
        blocks = {head: np.asarray(keys[start:stop]) for head, keys in heads.items()}
        rows = [
            {ROW: row} | {head: block[row - start] for head, block in blocks.items()}
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


def _create(client: Any, name: str, index_type: str, widths: Mapping[str, int]) -> None:
    from pymilvus import DataType

    schema = client.create_schema(auto_id=False, enable_dynamic_field=False)
    schema.add_field(ROW, DataType.INT64, is_primary=True)
    index = client.prepare_index_params()
    for head, width in widths.items():
        schema.add_field(head, DataType.FLOAT_VECTOR, dim=width)
        index.add_index(head, index_type=index_type or EXACT, metric_type="IP")
    client.create_collection(name, schema=schema, index_params=index, consistency_level="Strong")
