"""The scripts of the pages are modules: what one imports, another has."""

import re

import pytest

from qkvsearch.web.pages import FILES

MODULES = sorted(FILES.rglob("*.js"))
NAMES = [module.relative_to(FILES).as_posix() for module in MODULES]
IMPORT = re.compile(r'^import (?:\* as (\w+)|\{([^}]*)\}) from "([^"]+)";', re.MULTILINE)
EXPORT = re.compile(
    r"^export (?:async )?(?:function\*?|class|const|let) (\w+)|^export \{([^}]*)\}", re.MULTILINE
)


def names_in(braces):
    """The names in the braces of an import or export, each as (there, here)."""
    for one in filter(None, map(str.strip, braces.split(","))):
        there, _, here = one.partition(" as ")
        yield there, here or there


def exported(module):
    found = set()
    for name, braces in EXPORT.findall(module.read_text(encoding="utf-8")):
        found |= {name} if name else {here for _, here in names_in(braces)}
    return found


@pytest.mark.parametrize("module", MODULES, ids=NAMES)
def test_what_a_script_imports_is_there_and_used(module):
    script = module.read_text(encoding="utf-8")
    missing, unused = [], []
    for whole, braces, path in IMPORT.findall(script):
        there = (module.parent / path).resolve()
        assert there.is_file(), f"{path} is no file"
        names = [(whole, whole)] if whole else list(names_in(braces))
        missing += [name for name, _ in names if not whole and name not in exported(there)]
        unused += [here for _, here in names if len(re.findall(rf"\b{here}\b", script)) < 2]
    assert missing == []
    assert unused == []


def test_every_import_is_of_a_form_that_is_checked():
    for module in MODULES:
        script = module.read_text(encoding="utf-8")
        lines = re.findall(r"^import\b", script, re.MULTILINE)
        assert len(lines) == len(IMPORT.findall(script)), module
