"""Synonyms that the owner of a catalog lists."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from qkvsearch.data.judgements import numbered_lines
from qkvsearch.errors import DataError

# For each text, its synonyms.
Synonyms = dict[str, list[str]]

# The fact of a build that stores them.
FACT = "synonyms"
ARROW = "=>"
MAX_TEXTS = 100_000


def read_synonyms(path: str | Path) -> Synonyms:
    """Read a file with a rule a line. Raises `DataError` that names the line.

    `sweater, jumper, pullover` are synonyms of each other. `tv => television, telly` holds in this
    direction only. Text behind # is a comment.
    """
    synonyms: Synonyms = {}
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
        _add(synonyms, left, right if arrow else left)
        if len(synonyms) > MAX_TEXTS:
            raise DataError(f"{path}, line {number}: more than {MAX_TEXTS:,} words; give fewer")
    if not synonyms:
        raise DataError(f"{path}: no synonyms here; write some a line: sweater, jumper, pullover")
    return synonyms


def as_synonyms(source: str | Path | Mapping[str, Iterable[str]] | None) -> Synonyms:
    """Return the synonyms of a file or a mapping; none for None. Raises `DataError`.

    >>> as_synonyms({"tv": ["television"]})
    {'tv': ['television']}
    """
    if source is None:
        return {}
    if isinstance(source, str | Path):
        return read_synonyms(source)
    return {str(text): [str(other) for other in others] for text, others in source.items()}


def _names(text: str) -> list[str]:
    return [" ".join(name.split()) for name in text.split(",") if name.strip()]


def _add(synonyms: Synonyms, left: list[str], right: list[str]) -> None:
    for name in left:
        others = synonyms.setdefault(name, [])
        others += [other for other in right if other != name and other not in others]
