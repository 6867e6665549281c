"""The structure: imports in no circle, folders that can be taken in, one meaning a class name."""

from __future__ import annotations

import ast
from collections import Counter, defaultdict
from graphlib import TopologicalSorter
from pathlib import Path

import grimp
import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "qkvsearch"
FILES = sorted(PACKAGE.rglob("*.py"))
MOST_FILES, MOST_LINES = 16, 400

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


def test_no_benchmark_imports_itself_round_a_corner():
    scripts = {path.stem: path for path in (ROOT / "benchmarks").rglob("*.py")}
    imports = {}
    for stem, path in scripts.items():
        found = set()
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom):
                found |= {(node.module or "").split(".")[-1], *(name.name for name in node.names)}
            elif isinstance(node, ast.Import):
                found |= {name.name.split(".")[-1] for name in node.names}
        imports[stem] = found & scripts.keys() - {stem}
    assert set(in_order(imports)) == scripts.keys()


def test_a_folder_can_be_taken_in_at_a_glance():
    counts = Counter(path.parent for path in FILES if path.name != "__init__.py")
    crowded = {folder.name: n for folder, n in counts.items() if n > MOST_FILES}
    assert set(crowded) <= {"cli"}  # where a file is a command


def test_a_class_name_has_one_meaning():
    homes = defaultdict(list)
    for path in FILES:
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, ast.ClassDef):
                homes[node.name].append(str(path.relative_to(PACKAGE)))
    assert {name: where for name, where in homes.items() if len(where) > 1} == {}


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_file_is_one_idea_and_says_which(path):
    text = path.read_text("utf-8")
    assert len(text.splitlines()) <= MOST_LINES
    assert ast.get_docstring(ast.parse(text))
