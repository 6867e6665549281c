"""Synonyms that the owner of a catalog lists."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from qkvsearch._utils.validation import check_names, check_path
from qkvsearch.errors import DataError
from qkvsearch.tables.judgements import numbered_lines

# For each text, its synonyms.
Synonyms = dict[str, list[str]]

# The fact of a build that stores them.
FACT = "synonyms"
ARROW = "=>"
MAX_PAIRS = 1_000_000


def read_synonyms(path: str | Path) -> Synonyms:
    """Read a file with a rule a line. Raises `DataError` that names the line.

    `sweater, jumper, pullover` are synonyms of each other. `tv => television, telly` holds in this
    direction only. Text behind # is a comment.
    """
    synonyms: dict[str, dict[str, None]] = {}
    n_pairs = 0
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
        right = right if arrow else left
        n_pairs += len(left) * len(right)
        if n_pairs > MAX_PAIRS:
            raise DataError(
                f"{path}, line {number}: more than {MAX_PAIRS:,} pairs of words and synonyms; "
                "write fewer or shorter rules"
            )
        for name in left:
            synonyms.setdefault(name, {}).update((other, None) for other in right if other != name)
    if not synonyms:
        raise DataError(f"{path}: no synonyms here; write some a line: sweater, jumper, pullover")
    return {name: list(others) for name, others in synonyms.items()}


def as_synonyms(source: str | Path | Mapping[str, Iterable[str]] | None) -> Synonyms:
    """Return the synonyms of a file or a mapping; none for None. Raises `DataError`.

    >>> as_synonyms({"tv": ["television"]})
    {'tv': ['television']}
    """
    if source is None:
        return {}
    if isinstance(source, Mapping):
        return {str(text): check_names("synonyms", others) for text, others in source.items()}
    check_path("synonyms", source, "a file, or a mapping from texts to their synonyms")
    return read_synonyms(source)


def _names(text: str) -> list[str]:
    return [" ".join(name.split()) for name in text.split(",") if name.strip()]
