"""Imports of the package form no circle."""

from graphlib import TopologicalSorter
from pathlib import Path

import grimp
import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "qkvsearch"

pytestmark = pytest.mark.skipif(not PACKAGE.is_dir(), reason="not in a checkout")


def in_order(imports):
    """The modules, imported ones first. Raises `CycleError` that names a circle."""
    return list(TopologicalSorter(imports).static_order())


def test_no_module_imports_itself_round_a_corner():
    """Imports inside functions count, too: they only hide a circle."""
    graph = grimp.build_graph("qkvsearch", exclude_type_checking_imports=True, cache_dir=None)
    imports = {
        module: {
            found
            for found in graph.find_modules_directly_imported_by(module)
            if not module.startswith(f"{found}.")  # a module's own package
        }
        for module in graph.modules
    }
    assert len(in_order(imports)) == len(graph.modules)
