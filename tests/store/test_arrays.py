"""Arrays in files: what is written is read back, and no damage goes unnamed or runs code."""

import io
import json
import os
import pickle
import signal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis.extra import numpy as npst

from qkvsearch.errors import DamagedError
from qkvsearch.store import checksums
from qkvsearch.store.array_files import (
    StoredFile,
    read_array,
    share_file,
    write_array,
)
from qkvsearch.store.checksums import check_file, checksum


@pytest.fixture
def stored(tmp_path):
    path = tmp_path / "a.npy"
    return StoredFile(path, write_array(path, np.arange(999)))


def flip(path, place):
    """Change a byte; the file keeps its size, and gets another time."""
    data = bytearray(path.read_bytes())
    data[place] ^= 0x55
    path.write_bytes(data)


dtypes = (
    npst.integer_dtypes()
    | npst.floating_dtypes()
    | npst.boolean_dtypes()
    | npst.unicode_string_dtypes(min_len=1)
)


@settings(max_examples=40)  # each waits for the disk
@given(npst.arrays(dtypes, npst.array_shapes(min_dims=1, max_dims=2, min_side=0)))
def test_any_array_comes_back_as_it_was(tmp_path_factory, array):
    path = tmp_path_factory.mktemp("any") / "x.npy"
    entry = json.loads(json.dumps(write_array(path, np.asfortranarray(array))))
    back = read_array(StoredFile(path, entry))
    assert back.dtype == array.dtype
    np.testing.assert_array_equal(back, array)


def test_arrays_are_mapped_and_cannot_be_written_to(stored):
    array = read_array(stored)
    assert isinstance(array.base, np.memmap)
    with pytest.raises(ValueError, match="read-only"):
        array[0] = 1


@pytest.mark.parametrize("place", [3, 40, 200, -1])
def test_a_flipped_byte_is_found_and_the_file_named(stored, place):
    read_array(stored)
    flip(stored.path, place)
    with pytest.raises(DamagedError, match=r"a\.npy: damaged: its checksum") as caught:
        read_array(stored)
    assert caught.value.file == stored.path


def test_a_file_is_compared_once_a_process_unless_it_changes(stored, monkeypatch):
    read = []
    compare = checksums.compare
    monkeypatch.setattr(checksums, "compare", lambda *a: (read.append(a), compare(*a)))
    for _ in range(3):
        read_array(stored)
    assert len(read) == 1
    os.utime(stored.path, ns=(1, 1))
    read_array(stored)
    assert len(read) == 2


@pytest.mark.parametrize("what", ["missing", "short", "link", "folder"])
def test_a_file_that_is_none_is_found(stored, what):
    path = stored.path
    data = path.read_bytes()
    path.unlink()
    if what == "short":
        path.write_bytes(data[:-1])
    elif what == "link":
        (path.parent / "elsewhere").write_bytes(data)
        path.symlink_to(path.parent / "elsewhere")
    elif what == "folder":
        path.mkdir()
    with pytest.raises(DamagedError, match=r"a\.npy"):
        read_array(stored)


def test_nothing_is_shared_that_is_damaged_though_it_was_sound_when_it_was_read(stored, tmp_path):
    read_array(stored)
    before = stored.path.stat()
    flip(stored.path, -1)
    os.utime(stored.path, ns=(before.st_atime_ns, before.st_mtime_ns))
    with pytest.raises(DamagedError):
        share_file(stored, tmp_path / "b.npy")
    assert not (tmp_path / "b.npy").exists()


def test_a_shared_file_is_the_same_one_with_the_same_entry(stored, tmp_path):
    entry = share_file(stored, tmp_path / "b.npy")
    assert (tmp_path / "b.npy").samefile(stored.path)
    assert entry == stored.entry
    check_file(tmp_path / "b.npy", entry)


def test_without_hard_links_a_file_is_copied(stored, tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr("pathlib.Path.hardlink_to", refuse)
    share_file(stored, tmp_path / "b.npy")
    assert not (tmp_path / "b.npy").samefile(stored.path)
    assert checksum(tmp_path / "b.npy") == stored.entry["xxh3"]


class Trap:
    """Runs code when it is unpickled."""

    def __reduce__(self):
        return (os.system, ("echo unpickled > trapped",))


def test_nothing_is_unpickled_though_its_checksum_fits(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "x.npy"
    np.save(path, np.array([Trap()], dtype=object), allow_pickle=True)
    for data in (path.read_bytes(), pickle.dumps(Trap())):
        path.write_bytes(data)
        entry = {"bytes": len(data), "xxh3": checksum(path)}
        with pytest.raises(DamagedError):
            read_array(StoredFile(path, entry))
    assert not (tmp_path / "trapped").exists()
    with pytest.raises(ValueError, match=r"[Oo]bject arrays"):
        write_array(path, np.array([{}, None]))


@pytest.mark.skipif(os.name == "nt", reason="Windows has no limit on the size of files")
@pytest.mark.parametrize("room", [100, 4096, 79_000, 80_000, 80_127])
def test_a_disk_that_is_full_at_any_byte_is_noticed(tmp_path, room):
    """NumPy's own writing to a file loses what its last buffer could not be written of."""
    resource = pytest.importorskip("resource")
    before, trap = resource.getrlimit(resource.RLIMIT_FSIZE), signal.SIG_IGN
    former = signal.signal(signal.SIGXFSZ, trap)
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, before[1]))
    try:
        with pytest.raises(OSError, match="too large"):
            write_array(tmp_path / "x.npy", np.arange(10_000.0))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, former)


@pytest.mark.parametrize("claimed", [{"shape": [4]}, {"dtype": "<f8"}, {"shape": "x"}])
def test_a_checksummed_array_of_another_shape_or_type_is_refused(tmp_path, claimed):
    path = tmp_path / "x.npy"
    entry = {**write_array(path, np.arange(3)), **claimed}
    with pytest.raises(DamagedError, match=r"x\.npy"):
        read_array(StoredFile(path, entry))


def test_a_header_that_claims_more_than_there_is_is_refused(tmp_path):
    path, written = tmp_path / "x.npy", io.BytesIO()
    np.lib.format.write_array_header_1_0(
        written, {"descr": "<f8", "fortran_order": False, "shape": (10**12,)}
    )
    path.write_bytes(written.getvalue())
    entry = {"bytes": path.stat().st_size, "xxh3": checksum(path)}
    with pytest.raises(DamagedError):
        read_array(StoredFile(path, entry))
