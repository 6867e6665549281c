"""Brings the catalogs of translations up to date with the code: python docs/translations.py.

A catalog holds the texts of the page, the terminal, the exports and the drawings; a lesson's own
text is in its documents. A language of `_utils/spoken.py` without a catalog gets an empty one. New
texts are left empty in `lessons.po`, to be translated there; unused ones are removed. Run it again
after translating: it writes `lessons.mo`, which gettext reads.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from babel.messages import Catalog
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po
from jinja2 import Environment
from jinja2.ext import extract_from_ast

from qkvsearch._utils.spoken import LANGUAGES, ORIGINAL
from qkvsearch.lessons.messages import DOMAIN, LOCALE

ROOT = Path(__file__).parent.parent
SPOKEN = ("qkvsearch/lessons", "qkvsearch/cli", "qkvsearch/web")
# Where templates say them, as Jinja2 finds them.
TEMPLATES = "qkvsearch/web/templates"
# Functions whose first argument is a message.
KEYWORDS = ("say", "mark")
# No clock: one and the same text makes one and the same file.
UNDATED = datetime(2025, 1, 1, tzinfo=UTC)


def said() -> Iterator[tuple[str, ast.expr]]:
    """Where a message is said, and what. A method of that name, as a terminal has, is no such."""
    for folder in SPOKEN:
        for path in sorted((ROOT / folder).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
                    continue
                if node.func.id in KEYWORDS:
                    yield path.relative_to(ROOT).as_posix(), node.args[0]


def said_in_templates() -> Iterator[tuple[str, str]]:
    """The same of the pages' templates; where no constant is said, Jinja2 finds none."""
    environment = Environment()
    for path in sorted((ROOT / TEMPLATES).glob("*.html")):
        parsed = environment.parse(path.read_text(encoding="utf-8"))
        for _, _, message in extract_from_ast(parsed, ("say",)):
            # With what fills its places, each of which Jinja2 gives as None.
            first = message[0] if isinstance(message, tuple) else message
            yield path.relative_to(ROOT).as_posix(), str(first)


def template() -> Catalog:
    """Every message in the code, with the files that say it."""
    found = Catalog(project="qkvsearch", creation_date=UNDATED)
    for place, message in said_in_templates():
        found.add(message, locations=[(place, None)])
    for place, message in said():
        if isinstance(message, ast.Constant):
            found.add(message.value, locations=[(place, None)])
    return found


def catalog(path: Path) -> Catalog:
    """The translations in a .po file; none where the file is not there yet."""
    language = path.parts[-3]
    if not path.exists():
        return Catalog(language, domain=DOMAIN, project="qkvsearch", creation_date=UNDATED)
    with path.open("rb") as file:
        return read_po(file, locale=language, domain=DOMAIN)


def catalog_path(language: str) -> Path:
    """Where the .po file of a language is."""
    return LOCALE / language / "LC_MESSAGES" / f"{DOMAIN}.po"


def update(path: Path, new: dict[str, str] | None = None) -> None:
    """Write the .po with the messages of the code, and the .mo beside it; new: translations."""
    translated = catalog(path)
    translated.update(template(), no_fuzzy_matching=True)
    translated.obsolete.clear()
    translated.revision_date = UNDATED
    translated.msgid_bugs_address = "the issue tracker"
    for message, text in (new or {}).items():
        translated[message].string = text
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        write_po(file, translated, width=100, sort_by_file=True, include_lineno=False)
    with path.with_suffix(".mo").open("wb") as file:
        write_mo(file, translated)


if __name__ == "__main__":
    for language in LANGUAGES:
        if language != ORIGINAL:
            update(catalog_path(language))
