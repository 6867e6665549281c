"""Compiled code on disk that an older version of the package has left."""

import sys
from types import ModuleType

import pytest

from qkvsearch._utils.compiled import CacheFile, compiled


@pytest.fixture
def older(monkeypatch):
    """A module with a class that the next version does not have."""
    module = ModuleType("older_version")
    module.Kept = type("Kept", (), {"__module__": "older_version"})
    monkeypatch.setitem(sys.modules, "older_version", module)
    return module


@pytest.mark.parametrize("is_in_key", [True, False])
def test_code_that_names_a_class_that_is_gone_is_compiled_anew(tmp_path, older, is_in_key):
    files = CacheFile(str(tmp_path), "function", source_stamp=(1.0, 2))
    key = older.Kept if is_in_key else "key"
    files.save(key, "code" if is_in_key else older.Kept)
    assert files.load(key) is not None
    del older.Kept
    assert files.load("key") is None
    files.save("key", "new code")
    assert files.load("key") == "new code"


def test_a_compiled_function_has_such_files():
    assert isinstance(compiled(lambda x: x)._cache._cache_file, CacheFile)
