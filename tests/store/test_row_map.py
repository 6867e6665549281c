"""RowMap: items in the order of their ids, whichever segments they are in."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from qkvsearch.store.row_map import RowMap


class Model:
    """The same by hand: (stored row, origin) by id, sorted anew after each change."""

    def __init__(self, base):
        self.base = sorted(base)
        self.items = {id_: (row, row) for row, id_ in enumerate(self.base)}
        self.tombstones, self.after, self.origin, self.keys = [], [], [], []

    def add(self, ids):
        for id_ in sorted(set(ids)):
            row = len(self.base) + len(self.keys)
            before = self.items.get(id_)
            if before:
                self.tombstones.append(before[0])
            origin = before[1] if before else -1
            self.after.append(sum(known < id_ for known in self.base))
            self.origin.append(origin)
            self.keys.append(id_)
            self.items[id_] = (row, origin)

    def remove(self, ids):
        for id_ in set(ids) & self.items.keys():
            self.tombstones.append(self.items.pop(id_)[0])

    def rows(self):
        tombstones, after, origin = (
            np.array(x, dtype=np.int64) for x in (sorted(self.tombstones), self.after, self.origin)
        )
        return RowMap.joined(len(self.base), tombstones, after, origin, self.keys)


ids = st.sets(st.integers(-20, 20), min_size=1, max_size=8)
steps = st.lists(st.tuples(st.booleans(), ids), max_size=6)


@settings(max_examples=50)
@given(ids, steps)
def test_items_are_in_the_order_of_ids_and_keep_their_rows(base, changes):
    model = Model(base)
    for adds, named in changes:
        (model.add if adds else model.remove)(named)
    rows = model.rows()
    expected = [model.items[id_] for id_ in sorted(model.items)]
    assert [tuple(pair) for pair in zip(rows.stored, rows.origin, strict=True)] == expected
    assert len(rows) == len(expected)
    stored_ids = np.array([*model.base, *model.keys])
    pieces = [stored_ids[: len(model.base)], stored_ids[len(model.base) :]]
    assert rows.take(pieces).tolist() == sorted(model.items)
    places = {row: place for place, (row, _) in enumerate(expected)}
    assert rows.item_rows.tolist() == [places.get(row, -1) for row in range(len(stored_ids))]
    with_origin = {origin: place for place, (_, origin) in enumerate(expected) if origin >= 0}
    assert rows.item_rows_of_base.tolist() == [with_origin.get(row, -1) for row in range(len(base))]
    values = np.arange(1, len(base) + 1)
    assert rows.by_origin(values).tolist() == [origin + 1 for _, origin in expected]


def test_a_base_alone_is_read_without_a_copy():
    rows, values = RowMap.plain(3), np.arange(3)
    assert rows.is_plain
    assert rows.take([values]) is values
    assert rows.by_origin(values) is values
    joined = RowMap.joined(3, np.array([1]), np.array([], int), np.array([], int), [])
    assert not joined.is_plain
    assert joined.take([values]).tolist() == [0, 2]


def test_rows_can_be_put_in_another_order():
    rows, values = RowMap.plain(5).sorted_by(["b", "a", "e", "d", "c"]), np.arange(10).reshape(5, 2)
    assert not rows.is_plain
    assert rows.take([values]).tolist() == values[[1, 0, 4, 3, 2]].tolist()
    assert rows.by_origin(values).tolist() == values[[1, 0, 4, 3, 2]].tolist()
    assert rows.item_rows.tolist() == [1, 0, 4, 3, 2]
