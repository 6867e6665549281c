"""Imports of the package form no circle."""

import ast
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


def imported_outside_functions(path, modules):
    """The modules that a file imports at its top, for its annotations included."""
    waiting, found = [ast.parse(path.read_text())], set()
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.ImportFrom):
            names = {f"{node.module}.{alias.name}" for alias in node.names} & modules
            found |= names or {node.module} & modules
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            waiting += ast.iter_child_nodes(node)
    return found


def test_no_annotation_needs_a_module_that_needs_its_own():
    names = {}
    for path in PACKAGE.rglob("*.py"):
        parts = path.relative_to(ROOT).with_suffix("").parts
        names[".".join(parts).removesuffix(".__init__")] = path
    modules = names.keys() - {"qkvsearch"}  # the package hands on lazily
    imports = {name: imported_outside_functions(names[name], modules) for name in modules}
    assert len(in_order(imports)) == len(modules)


def defined_names(path):
    """The names of the classes in a file, and of the types that it gives a name at its top."""
    tree = ast.parse(path.read_text())
    aliases = {
        target.id
        for node in tree.body
        if isinstance(node, ast.Assign | ast.AnnAssign)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name) and not target.id.isupper()
    }
    return [node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef)], aliases


def test_no_two_classes_have_one_name():
    """Neither has a class and a type. Files may each name the same type, such as `Array`."""
    places = {}
    aliases = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        classes, of_file = defined_names(path)
        for name in classes:
            places.setdefault(name, []).append(path)
        for name in of_file:
            aliases.setdefault(name, []).append(path)
    twice = {
        name: [str(path.relative_to(ROOT)) for path in paths + aliases.get(name, [])]
        for name, paths in places.items()
        if len(paths + aliases.get(name, [])) > 1
    }
    assert twice == {}
