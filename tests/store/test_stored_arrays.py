"""The store puts the arrays of segments together as they declare."""

from contextlib import closing
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

from qkvsearch.store import BuildContents, CatalogRows
from qkvsearch.store.array_spec import ArraySpec
from qkvsearch.store.segments import AFTER, ORIGIN
from qkvsearch.store.stored_arrays import StoredArrays


@dataclass(frozen=True)
class Toy(StoredArrays):
    group: str = "toy"
    arrays: ClassVar = {
        "whole": ArraySpec("f", ("numbers",)),
        "lengths": ArraySpec("i", ("items",), rows="texts"),
        "starts": ArraySpec("i", ("items",), rows="texts", lists="tokens"),
        "tokens": ArraySpec("i", ("tokens", "components"), rows="texts"),
        "counts": ArraySpec("i", ("items",), rows="interactions"),
        "begins": ArraySpec("i", ("items",), rows="interactions", lists="pairs"),
        "partners": ArraySpec("i", ("pairs",), rows="interactions", below="items"),
        "weights": ArraySpec("f", ("pairs",), rows="interactions"),
        "names": ArraySpec("i", ("items",), rows="own"),
    }

    def joined(self, snapshot):
        names = np.zeros(len(snapshot.rows), int)
        for arrays, item_rows in self.pieces(snapshot, "names"):
            names[item_rows[item_rows >= 0]] = arrays["names"][item_rows >= 0]
        return {"names": names}


TOY = Toy()
BASE = {
    "whole": np.array([0.5]),
    "lengths": np.array([40, 70, 80, 300, 1000]),
    "starts": np.array([0, 2, 2, 3, 4, 5]),
    "tokens": np.array([[4], [4], [8], [30], [100]]),
    "counts": np.array([4, 7, 8, 30, 100]),
    # 4 has 7 and 30, 8 has 4, and 30 has 100 and 8.
    "begins": np.array([0, 2, 2, 3, 5, 5]),
    "partners": np.array([1, 3, 0, 4, 2], dtype=np.int32),
    "weights": np.array([0.25, 0.5, 1.0, 2.0, 4.0]),
    "names": np.array([4, 7, 8, 30, 100]),
}
# 5 is new, and 30 is replaced.
ADDED = {
    "lengths": np.array([50, 333]),
    "starts": np.array([0, 1, 3]),
    "tokens": np.array([[5], [33], [33]]),
    "names": np.array([5, 33]),
}
# The items are 4, 5, 8, 30 and 100: 7 is removed.
MERGED = {
    "whole": [0.5],
    "lengths": [40, 50, 80, 333, 1000],
    "starts": [0, 2, 3, 4, 6, 7],
    "tokens": [[4], [4], [5], [8], [33], [33], [100]],
    "counts": [4, 0, 8, 30, 100],
    "begins": [0, 1, 1, 2, 4, 4],
    "partners": [3, 0, 2, 4],
    "weights": [0.5, 1.0, 4.0, 2.0],
    "names": [4, 5, 8, 33, 100],
}


@pytest.fixture
def base(workspace, make_contents):
    contents = make_contents()
    TOY.put(contents, **BASE)
    workspace.publish(contents, "build")
    with closing(workspace.open()) as build:
        yield build


@pytest.fixture
def build(workspace, base, make_catalog):
    catalog = make_catalog([(5, "Five", 1999, "War", 1.0), (30, "Pot", 1995, "War", 4.5)])
    contents = BuildContents(
        CatalogRows.of_segment(catalog, base.catalog),
        facts={**base.facts, "n_items": 5},
        base=base,
        arrays={AFTER: base.base.catalog.rows_before(catalog.ids), ORIGIN: np.array([-1, 3])},
        tombstones=np.array([1, 3]),
    )
    TOY.put(contents, **ADDED)
    workspace.publish(contents, "add")
    with closing(workspace.open()) as opened:
        yield opened


def test_a_build_of_one_base_is_read_as_it_is_and_shared(base):
    for name, values in TOY.read(base).items():
        np.testing.assert_array_equal(values, BASE[name], err_msg=name)
    contents = BuildContents()
    TOY.merge(contents, base)
    assert contents.shared.keys() == {f"toy.{name}.npy" for name in BASE}
    assert contents.arrays == {}


def test_segments_merge_into_one_base_as_they_declare(build):
    contents = BuildContents()
    TOY.merge(contents, build)
    for name, values in MERGED.items():
        assert TOY.pending(contents, name).tolist() == values, name
    assert contents.shared.keys() == {"toy.whole.npy"}
    assert TOY.pending(contents, "partners").dtype == np.int32


def test_segments_are_read_in_the_order_of_the_items(build):
    found = TOY.read(build, "whole", "lengths", "counts")
    assert {name: values.tolist() for name, values in found.items()} == {
        name: MERGED[name] for name in found
    }
    numbered = TOY.renumbered_lists(build, "begins")
    assert all(values.tolist() == MERGED[name] for name, values in numbered.items())
    lists = TOY.item_lists(build, "starts", "tokens")
    entries = np.concatenate([lists.entries, *lists.added])
    spans = zip(lists.starts[lists.rows], lists.starts[lists.rows + 1], strict=True)
    assert [entries[a:b].ravel().tolist() for a, b in spans] == [[4, 4], [5], [8], [33, 33], [100]]


def test_rows_of_some_items_are_zeros_where_there_are_none(build):
    positions = np.array([3, -1, 1, 0])
    assert TOY.rows_at(build, "lengths", positions).tolist() == [333, 0, 50, 40]
    assert TOY.rows_at(build, "counts", positions).tolist() == [30, 0, 0, 4]
