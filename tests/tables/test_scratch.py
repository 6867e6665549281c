"""Arrays in files: as those in memory are, and gone with the process."""

import os

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qkvsearch._utils import scratch
from qkvsearch._utils.scratch import (
    GrowingArray,
    counts_of,
    filtered,
    first_rows,
    give_back,
    grouped,
    in_file,
    scratch_array,
)
from qkvsearch.errors import DataError

codes = st.lists(st.integers(-1, 5), max_size=30).map(lambda x: np.array(x, dtype=np.int32))


@pytest.fixture(params=[1, 4, 1000])
def rows_at_once(request, monkeypatch):
    monkeypatch.setattr(scratch, "ROWS_AT_ONCE", request.param)
    monkeypatch.setattr(scratch, "LARGE", 40)


@pytest.mark.parametrize("size", [1, 3, 1000])
@given(found=codes)
def test_places_by_number_are_those_of_a_stable_sort(size, found):
    before = scratch.ROWS_AT_ONCE
    scratch.ROWS_AT_ONCE = size
    try:
        starts, places = grouped(found, 6)
        counts, first = counts_of(found, 6), first_rows(found, 6)
    finally:
        scratch.ROWS_AT_ONCE = before
    order = np.argsort(found, kind="stable")
    assert places.tolist() == order[found[order] >= 0].tolist()
    assert np.diff(starts).tolist() == counts.tolist() == [(found == k).sum() for k in range(6)]
    listed = found.tolist()
    assert first.tolist() == [listed.index(k) if k in listed else len(listed) for k in range(6)]


def test_a_growing_array_is_its_pieces_in_memory_or_in_a_file(rows_at_once):
    grown, pieces = GrowingArray(np.int32), [np.arange(k) for k in range(9)]
    for piece in pieces:
        grown.append(piece)
    grown.fill(7, 5)
    expected = [*np.concatenate(pieces).tolist(), *[7] * 5]
    assert (len(grown), grown.whole().tolist()) == (len(expected), expected)


def test_large_arrays_leave_no_file(rows_at_once, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    array = scratch_array((5, 4), np.float32)
    assert not array.any()
    array[:] = 3
    assert (array == 3).all()
    assert not os.listdir(tmp_path)


def test_a_full_disk_is_one_clear_line(rows_at_once, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full, raising=False)
    with pytest.raises(DataError, match=r": 16 MB are needed there.*No space left.*TMPDIR"):
        scratch_array(2_000_000, np.int64)
    with pytest.raises(DataError, match=r": 1\.6 GB are needed there"):
        scratch_array(200_000_000, np.int64)
    monkeypatch.setattr(scratch, "scratch_file", full)
    with pytest.raises(DataError, match="No space left"):
        GrowingArray(np.int64).append(np.zeros(1000, np.int64))
    with pytest.raises(DataError, match="No space left"):
        in_file(np.zeros(1000, np.int64))


def test_what_is_taken_is_copied_only_where_something_is_left_out(rows_at_once):
    array = np.arange(9)
    assert filtered(array, np.ones(9, bool)) is array
    assert filtered(array, array % 2 == 0).tolist() == [0, 2, 4, 6, 8]


@pytest.mark.parametrize(
    "array",
    [
        np.arange(60).reshape(20, 3),
        np.arange(60).reshape(20, 3).T,
        np.array([b"sea", b"", b"ox"] * 20),
        np.zeros((7, 0)),
    ],
)
def test_an_array_in_a_file_is_what_it_was(array, monkeypatch):
    monkeypatch.setattr(scratch, "LARGE", 40)
    stored = in_file(array)
    give_back(stored[1:])
    assert stored.dtype == array.dtype
    assert stored.tolist() == array.tolist()
    assert in_file(stored) is stored
    stored.ravel()[:1] = array.ravel()[1:2]
    give_back(stored)
    assert stored.ravel()[:1].tolist() == array.ravel()[1:2].tolist()


def test_small_arrays_stay_in_memory():
    array = np.arange(3)
    assert in_file(array) is array
    give_back(array)
    assert array.tolist() == [0, 1, 2]


@pytest.mark.skipif(not os.path.exists("/proc/self/smaps"), reason="tells what is in memory")
def test_an_array_in_a_file_takes_no_memory_until_it_is_read(monkeypatch):
    monkeypatch.setattr(scratch, "LARGE", 40)
    stored = in_file(np.ones(1 << 20))

    def in_memory():
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    before = in_memory()
    assert stored.sum() == 1 << 20
    read = in_memory()
    give_back(stored)
    assert read - before > stored.nbytes / 2
    assert read - in_memory() > stored.nbytes / 2


def test_a_change_that_is_in_memory_alone_is_kept(tmp_path):
    np.arange(2000).tofile(tmp_path / "array")
    private = np.memmap(tmp_path / "array", np.int64, mode="c")
    private[0] = 7
    give_back(private)
    assert private[0] == 7
