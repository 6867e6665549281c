"""Front matter: what the first lines of a document say about it, as keys and values."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

from qkvsearch._utils.limits import CELL_BYTES, JSON_DEPTH, check_unpacked
from qkvsearch.errors import DataError, need

# Lines of YAML between two lines of hyphens.
FENCED = re.compile(r"\A---[ \t]*\n(?:(.*?)\n)??(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)
KEY = re.compile(r"([\w][\w .-]*?)[ \t]*:(?:[ \t]+(.*))?")
# What YAML means by nothing.
NOTHING = ("", "~", "null", "Null", "NULL")
EMPTY: tuple[Any, ...] = (None, [], {})


def without_front_matter(text: str, notes: Counter[str]) -> tuple[dict[str, Any], str]:
    """Return the keys and values above a text, values as they are written, and the text below.

    Nested keys become columns of their own with those of JSON (`tables.fields`). Raises `DataError`
    where YAML is to be read and its library is missing.

    >>> without_front_matter("---\\nyear: 0987\\ntags: [a, b]\\n---\\nText", Counter())
    ({'year': '0987', 'tags': ['a', 'b']}, 'Text')
    """
    match = FENCED.match(text)
    if match is None:
        return {}, text
    written = match[1] or ""
    below = text[match.end() :]
    values = _yaml(written)
    if values is None:
        values = _line_by_line(written)
        if not values:  # a line, as between two parts of a text
            return {}, text
        notes["front matter that is not YAML, read line by line"] += 1
    check_unpacked(_size(values, {}, 0), len(text), "its front matter")
    columns: dict[str, Any] = _filled(values)
    return columns, below


def _yaml(text: str) -> Mapping[Any, Any] | None:
    """Return what YAML says, all values as texts; None where it is not YAML with keys."""
    yaml = need("yaml", "markdown", "reading front matter", name="PyYAML", error=DataError)
    loader = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
    try:
        values = yaml.load(text, loader)
    except (yaml.YAMLError, RecursionError, ValueError):
        return None
    if not text.strip() or text.lstrip().startswith("#"):
        return values if isinstance(values, dict) else {}
    return values if isinstance(values, dict) else None


def _line_by_line(text: str) -> dict[str, str]:
    """Return keys and values where each line has one, as in `title: Ferries: a history`."""
    matches = [KEY.fullmatch(line.strip()) for line in text.split("\n") if line.strip()]
    if any(match is None for match in matches):
        return {}
    return {match[1]: (match[2] or "").strip().strip("\"'") for match in matches if match}


def _filled(value: Any) -> Any:
    """Return a value without what is nothing within it: None, or an empty list or object."""
    if isinstance(value, dict):
        filled = {str(key): _filled(inner) for key, inner in value.items()}
        return {key: inner for key, inner in filled.items() if inner not in EMPTY}
    if isinstance(value, list):
        return [inner for inner in map(_filled, value) if inner not in EMPTY]
    return None if value in NOTHING else value


def _size(value: Any, known: dict[int, int], depth: int) -> int:
    """Return about how many bytes a value takes: a few lines of YAML may say a thousand million.

    known: the sizes of the lists and keys so far, by identity, since YAML may name them again.
    """
    JSON_DEPTH.check(depth, "its front matter")
    if not isinstance(value, list | dict):
        return CELL_BYTES + len(value or "")
    if id(value) not in known:
        entries = [*value, *value.values()] if isinstance(value, dict) else value
        known[id(value)] = CELL_BYTES + sum(_size(entry, known, depth + 1) for entry in entries)
    return known[id(value)]
