"""Words that mean the same in a catalog, as its owner lists them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from qkvsearch.data.judgements import numbered_lines
from qkvsearch.errors import DataError

# Each text to what it may be called as well.
Synonyms = dict[str, list[str]]

ARROW = "=>"
MOST_RULES = 100_000


def read_synonyms(path: str | Path) -> Synonyms:
    """A file with a rule a line: `sweater, jumper, pullover` all mean each other; `tv =>
    television, telly` is looked up that way only. What is behind # is a comment. Raises `DataError`
    that names the line.
    """
    found: Synonyms = {}
    for number, line in numbered_lines(path):
        rule = line.partition("#")[0].strip()
        if not rule:
            continue
        before, arrow, behind = rule.partition(ARROW)
        left, right = _names(before), _names(behind)
        if (not left or not right) if arrow else len(left) < 2:
            raise DataError(
                f"{path}, line {number}: no rule: {rule[:60]!r}; write words that mean the same "
                "with commas between them, or `tv => television`"
            )
        _add(found, left, right if arrow else left)
        if len(found) > MOST_RULES:
            raise DataError(f"{path}, line {number}: more than {MOST_RULES:,} words; give fewer")
    if not found:
        raise DataError(f"{path}: no synonyms here; write some a line: sweater, jumper, pullover")
    return found


def as_synonyms(given: str | Path | Mapping[str, Iterable[str]] | None) -> Synonyms:
    """A file's, or what a mapping says of each text; none for None. Raises `DataError`.

    >>> as_synonyms({"tv": ["television"]})
    {'tv': ['television']}
    """
    if given is None:
        return {}
    if isinstance(given, str | Path):
        return read_synonyms(given)
    return {str(text): [str(other) for other in others] for text, others in given.items()}


def _names(text: str) -> list[str]:
    return [" ".join(name.split()) for name in text.split(",") if name.strip()]


def _add(found: Synonyms, left: list[str], right: list[str]) -> None:
    for name in left:
        others = found.setdefault(name, [])
        others += [other for other in right if other != name and other not in others]
