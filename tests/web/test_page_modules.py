"""The scripts of the pages find what they import and the sentences that they say."""

import json
import re
from pathlib import Path

import pytest

import qkvsearch.web.pages as pages

STATIC = Path(pages.__file__).parent / "static"
IMPORT = re.compile(r'import \{([^}]*)\} from "(\.[^"]+)"')
EXPORT = re.compile(r"export (?:async )?(?:function\*?|const|let|class) (\w+)")
EXPORT_LIST = re.compile(r"export \{([^}]*)\}")
# say("one"), say(condition ? "one" : "other")
SAID = re.compile(r'\bsay\((?:[^"(){}]*\? )?"(\w+)"(?: : "(\w+)")?')

# Of functions that a page's scripts have and the page does not call: bars and figures of scores.
NOT_CALLED = {"map": {"barSays", "tiny", "weight"}}


def imports(script: Path) -> list[tuple[str, Path]]:
    """(name, file) of everything that a script imports from others."""
    found = []
    for names, path in IMPORT.findall(script.read_text(encoding="utf-8")):
        for name in names.split(","):
            if name.strip():
                found.append((name.split(" as ")[0].strip(), (script.parent / path).resolve()))
    return found


def exports(script: Path) -> set[str]:
    text = script.read_text(encoding="utf-8")
    listed = [
        name.split(" as ")[-1].strip()
        for names in EXPORT_LIST.findall(text)
        for name in names.split(",")
    ]
    return {*EXPORT.findall(text), *listed}


def reached(script: Path) -> set[Path]:
    """A script and all that it imports, directly or not."""
    found, waiting = set(), [script]
    while waiting:
        one = waiting.pop()
        if one not in found:
            found.add(one)
            waiting.extend(path for _, path in imports(one))
    return found


@pytest.mark.parametrize("script", sorted(STATIC.rglob("*.js")), ids=lambda path: path.name)
def test_imports_are_exported(script):
    missing = [name for name, path in imports(script) if name not in exports(path)]
    assert missing == []


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("page", ["search", "recommend", "map", "attend", "inside", "searches"])
def test_a_page_has_the_words_of_its_scripts(page, language):
    words = json.loads((pages.WORDS / f"{language}.json").read_text(encoding="utf-8"))
    there = pages.page_words(page, words)
    said = {
        name
        for script in reached((STATIC / f"{page}.js").resolve())
        for pair in SAID.findall(script.read_text(encoding="utf-8"))
        for name in pair
        if name
    }
    assert len(said) > 5
    assert said - set(there) - NOT_CALLED.get(page, set()) == set()
