"""What a catalog is, for somebody who sees it for the first time: its columns and their values."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Any

import numpy as np

from qkvsearch.heads.component import LANGUAGE
from qkvsearch.rank.display import unit_of
from qkvsearch.rank.loaded_build import LoadedBuild
from qkvsearch.store import StoredCatalog
from qkvsearch.tables.catalog_columns import StoredColumn
from qkvsearch.tables.column_types import type_named
from qkvsearch.tables.ids import id_text
from qkvsearch.terminal import shorten

# A text column is counted if its values in a sample of so many items are short and some recur.
SAMPLE_SIZE, MAX_VALUE_LENGTH = 200, 40
# The values of a column that are listed, the most frequent ones, and its examples.
MAX_VALUES, N_EXAMPLES, MAX_EXAMPLE_LENGTH = 10, 3, 80


def catalog_summary(build: LoadedBuild) -> dict[str, Any]:
    """Return what a build has: the numbers of its items, users and interactions, the language of
    its texts, the columns that a search reads, and the heads that take part in one.
    """
    facts, columns = build.snapshot.facts, build.catalog.catalog_columns
    return {
        "items": build.n_items,
        "users": len(build.histories.ids),
        "interactions": facts.get("n_interactions", 0),
        "language": facts[LANGUAGE],
        "searched_columns": [columns.name_of(stored) for stored in facts["text_columns"]],
        "heads": [head for head, weight in facts["head_weights"].items() if weight],
    }


def column_summary(catalog: StoredCatalog, column: StoredColumn) -> dict[str, Any]:
    """Return the `name` and `type` of a column, its `unit` if any, and what its cells are.

    An ordered column has `min` and `max`, another one the number of `distinct` values. `values` are
    the most frequent ones with their numbers of items, and many distinct numbers, and dates, in
    ranges. Texts that are long or all different have `examples` instead. `in_where` is how a
    condition spells the name where that is not the name itself.
    """
    name = catalog.catalog_columns.name_of(column.stored)
    summary: dict[str, Any] = {"name": name, "type": column.type}
    spelled = catalog.catalog_columns.sql_name(column)
    if spelled != name:
        summary["in_where"] = spelled
    unit = unit_of(catalog, column)
    if unit:
        summary["unit"] = unit
    sample = _sample(catalog, column)
    if type_named(column.type).is_text and not _recurs(column, sample):
        return summary | _examples(sample)
    return summary | _counted(catalog, column, unit)


def _sample(catalog: StoredCatalog, column: StoredColumn) -> list[Any]:
    """Return the cells of some items, without the empty ones."""
    n_items = len(catalog.ids("items"))
    rows = np.unique(np.linspace(0, n_items - 1, min(n_items, SAMPLE_SIZE)).astype(np.int64))
    return [cell for (cell,) in catalog.cells(rows, [column.stored]) if cell is not None]


def _recurs(column: StoredColumn, sample: list[Any]) -> bool:
    """Return whether the values of a sample are short, and one of them occurs twice."""
    values = [value for cell in sample for value in type_named(column.type).entries(cell)]
    are_short = all(len(value) <= MAX_VALUE_LENGTH for value in values)
    return are_short and len(set(values)) < len(values)


def _examples(sample: list[Any]) -> dict[str, Any]:
    """Return the first cells of a sample, cut where they are long."""
    texts = [
        shorten(" ".join(id_text(cell).split()), MAX_EXAMPLE_LENGTH) for cell in sample[:N_EXAMPLES]
    ]
    return {"examples": texts}


def _counted(catalog: StoredCatalog, column: StoredColumn, unit: str) -> dict[str, Any]:
    """Return `min` and `max`, or `distinct`, and `values`, as `column_summary` describes them."""
    kind = type_named(column.type)
    cells = catalog.values.cells(column.stored)
    counts = cells.counts(np.ones(len(cells.codes), dtype=bool))
    found: dict[str, Any] = {}
    if kind.is_ordered and counts:
        found["min"] = min(counts, key=kind.order)
        found["max"] = max(counts, key=kind.order)
    else:
        found["distinct"] = len({entry for cell in counts for entry in kind.entries(cell)})
    values: Mapping[str, int] = kind.counted(counts, cells.distinct, unit)
    found["values"] = dict(islice(values.items(), MAX_VALUES))
    return found
