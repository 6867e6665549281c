"""Front matter: what the first lines of a document say about it, as keys and values."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

from qkvsearch._utils.limits import CELL_BYTES, JSON_DEPTH, check_unpacked
from qkvsearch.errors import DataError, need

# Lines of YAML between two lines of hyphens. People indent the second one, too.
FENCED = tuple(
    re.compile(
        rf"\A(?:[ \t]*\n)*---[ \t]*\n(?:(.*?)\n)??{indent}(?:---|\.\.\.)[ \t]*(?:\n|\Z)",
        re.DOTALL,
    )
    for indent in ("", "[ \t]+")
)
KEY = re.compile(r"([\w][\w .-]*?)[ \t]*:(?:[ \t]+(.*))?")
ENTRY = re.compile(r"-(?:[ \t]+(.*))?")
# Hyphens and a key behind them, at the beginning of a text.
BEGINS = re.compile(rf"\A\s*---[ \t]*\n\s*{KEY.pattern}(?:\n|\Z)")
# What YAML means by nothing.
NOTHING = ("", "~", "null", "Null", "NULL")
EMPTY: tuple[Any, ...] = (None, [], {})


def without_front_matter(
    text: str, notes: Counter[str], doubts: list[str]
) -> tuple[dict[str, Any], str]:
    """Return the keys and values above a text, values as they are written, and the text below.

    Nested keys become columns of their own with those of JSON (`tables.fields`). Raises `DataError`
    where YAML is to be read and its library is missing.

    >>> without_front_matter("---\\nyear: 0987\\ntags: [a, b]\\n---\\nText", Counter(), [])
    ({'year': '0987', 'tags': ['a', 'b']}, 'Text')
    """
    repeated: list[str] = []
    for match in filter(None, (fenced.match(text) for fenced in FENCED)):
        written = match[1] or ""
        values = _yaml(written, repeated)
        if values is None:
            values = _line_by_line(written, repeated)
            if not values:
                repeated.clear()
                continue
            notes["front matter that is not YAML, read line by line"] += 1
        check_unpacked(_size(values, {}, 0), len(text), "its front matter")
        doubts += [
            f"its front matter has {key!r} more than once, and the first one counts"
            for key in dict.fromkeys(repeated)
        ]
        columns: dict[str, Any] = _filled(values)
        return columns, text[match.end() :]
    # Otherwise it is a line, as between two parts of a text.
    if BEGINS.match(text):
        doubts.append("its first lines look like front matter that cannot be read, and are text")
    return {}, text


def _yaml(text: str, repeated: list[str]) -> Mapping[Any, Any] | None:
    """Return what YAML says, all values as texts; None where it is not YAML with keys. Add the keys
    that it has more than once to `repeated`.
    """
    yaml = need("yaml", "markdown", "reading front matter", name="PyYAML", error=DataError)
    base = getattr(yaml, "CBaseLoader", yaml.BaseLoader)

    class Loader(base):  # type: ignore[misc, valid-type]
        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            pairs: dict[Any, tuple[Any, Any]] = {}
            for key, value in node.value:
                name = key.value if isinstance(key.value, str) else id(key)
                if name in pairs:
                    repeated.append(str(name))
                pairs.setdefault(name, (key, value))
            node.value = list(pairs.values())
            return super().construct_mapping(node, deep=deep)

    try:
        values = yaml.load(text, Loader)
    except (yaml.YAMLError, RecursionError, ValueError):
        repeated.clear()
        return None
    if not text.strip() or text.lstrip().startswith("#"):
        return values if isinstance(values, dict) else {}
    return values if isinstance(values, dict) else None


def _line_by_line(text: str, repeated: list[str]) -> dict[str, Any]:
    """Return keys and values where each line has one, as in `title: Ferries: a history`, or is an
    entry of a list, or is indented and goes on; {} where another line is among them.

    >>> _line_by_line("title: Ferries: a history\\ntags:\\n\\t- old\\n\\t- wood", [])
    {'title': 'Ferries: a history', 'tags': ['old', 'wood']}
    """
    values: dict[str, Any] = {}
    key, is_first, indent_of_entries = "", True, 0
    for line in text.split("\n"):
        bare = line.strip()
        if not bare or bare.startswith("#"):
            continue
        indent = len(line) - len(line.lstrip())
        of_key = KEY.fullmatch(bare) if not indent else None
        entry = ENTRY.fullmatch(bare)
        if of_key is not None:
            key, is_first = of_key[1], of_key[1] not in values
            if is_first:
                values[key] = _unquoted(of_key[2] or "")
            else:
                repeated.append(key)
        elif not key or not (indent or entry):
            return {}
        elif is_first and entry is not None and values[key] == "":
            values[key], indent_of_entries = [_unquoted(entry[1] or "")], indent
        elif is_first and isinstance(values[key], list) and (entry or indent <= indent_of_entries):
            # A line as far to the left as the entries is one without its hyphen.
            values[key].append(_unquoted((entry[1] or "") if entry else bare))
        elif is_first and isinstance(values[key], list):
            values[key][-1] += f" {bare}"
        elif is_first:
            values[key] = f"{values[key]} {bare}".strip()
    return values


def _unquoted(value: str) -> str:
    return value.strip().strip("\"'")


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
