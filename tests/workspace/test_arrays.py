"""A build's files: what is written is read back, and no damage goes unnamed or runs code."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis.extra import numpy as npst

from qkvsearch.errors import WorkspaceError
from qkvsearch.workspace import arrays
from qkvsearch.workspace.arrays import FORMAT_VERSION, read_array, read_manifest, write_build


@pytest.fixture
def folder(tmp_path):
    write_build(tmp_path / "b", {"a": np.arange(100), "e": np.zeros((0, 3))}, {"n_items": 7})
    return tmp_path / "b"


def test_facts_and_sizes_are_in_the_manifest(folder):
    manifest = read_manifest(folder)
    assert (manifest["format"], manifest["n_items"]) == (FORMAT_VERSION, 7)
    assert manifest["files"]["a"]["bytes"] == (folder / "a.npy").stat().st_size


def test_arrays_are_mapped_and_cannot_be_written_to(folder):
    array = read_array(folder, "a")
    assert isinstance(array.base, np.memmap)
    with pytest.raises(ValueError, match="read-only"):
        array[0] = 1


dtypes = (
    npst.integer_dtypes()
    | npst.floating_dtypes()
    | npst.boolean_dtypes()
    | npst.unicode_string_dtypes(min_len=1)
)


@settings(max_examples=40)  # each waits for the disk
@given(npst.arrays(dtypes, npst.array_shapes(min_dims=1, max_dims=2, min_side=0)))
def test_any_array_comes_back_as_it_was(tmp_path_factory, array):
    folder = tmp_path_factory.mktemp("any")
    write_build(folder / "b", {"x": np.asfortranarray(array)}, {})
    read_manifest(folder / "b")
    back = read_array(folder / "b", "x")
    assert back.dtype == array.dtype
    np.testing.assert_array_equal(back, array)


def test_objects_are_not_saved(tmp_path):
    with pytest.raises(ValueError, match=r"[Oo]bject arrays"):
        write_build(tmp_path / "b", {"x": np.array([{}, None])}, {})


class Trap:
    """Unpickling one leaves a mark."""

    sprung = False

    def __reduce__(self):
        return (setattr, (Trap, "sprung", True))


def test_a_file_of_objects_is_refused_without_unpickling(folder):
    np.save(folder / "a.npy", np.array([Trap()], dtype=object), allow_pickle=True)
    with pytest.raises(WorkspaceError, match=r"a\.npy: .*build the workspace again"):
        read_array(folder, "a")
    assert not Trap.sprung


@pytest.mark.parametrize(
    "content", ["", "{", "[]", "{}", '{"format": "x"}', '{"format": 1, "files": {"a": {}}}', "ÿ"]
)
def test_a_broken_manifest_is_named(folder, content):
    (folder / arrays.MANIFEST).write_bytes(content.encode("latin-1"))
    with pytest.raises(WorkspaceError, match=r"manifest\.json: .*build the workspace again"):
        read_manifest(folder)


def test_a_missing_manifest_is_named(folder):
    (folder / arrays.MANIFEST).unlink()
    with pytest.raises(WorkspaceError, match=r"manifest\.json"):
        read_manifest(folder)


def test_an_older_format_asks_for_a_new_build(folder):
    older = {"format": FORMAT_VERSION - 1, "files": {}}
    (folder / arrays.MANIFEST).write_text(json.dumps(older))
    with pytest.raises(WorkspaceError, match=rf"format {FORMAT_VERSION - 1}.*build .* again"):
        read_manifest(folder)


def test_a_newer_format_asks_for_an_upgrade_whatever_else_it_holds(folder):
    newer = {"format": FORMAT_VERSION + 1, "files": "elsewhere"}
    (folder / arrays.MANIFEST).write_text(json.dumps(newer))
    with pytest.raises(WorkspaceError, match=rf"format {FORMAT_VERSION + 1}.*upgrade"):
        read_manifest(folder)


def test_a_file_cut_short_is_named_with_both_sizes(folder):
    path = folder / "a.npy"
    size = path.stat().st_size
    path.write_bytes(path.read_bytes()[:-8])
    with pytest.raises(WorkspaceError, match=rf"a\.npy: {size - 8} bytes instead of {size}"):
        read_manifest(folder)


def test_a_missing_file_is_named(folder):
    (folder / "e.npy").unlink()
    with pytest.raises(WorkspaceError, match=r"e\.npy: missing"):
        read_manifest(folder)
    with pytest.raises(WorkspaceError, match=r"e\.npy"):
        read_array(folder, "e")
