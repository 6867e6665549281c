"""A title with one word mistyped, as fingers do it, or as a Chinese keyboard offers it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import numpy as np

from qkvsearch.evaluation.made_queries.query_kind import SPELLING
from qkvsearch.evaluation.made_queries.source import QueriedCatalog
from qkvsearch.evaluation.made_queries.title_words import Changed, TitleKind
from qkvsearch.text.analysis import CJK, HAS_CJK

# Shorter words are mostly typed right, and a search does not correct them. With four letters
# another one must not be dropped.
SHORTEST, SHORTEST_TO_DROP = 4, 5
# A Chinese character is as much as a syllable.
SHORTEST_CJK, SHORTEST_CJK_TO_DROP = 3, 4
CJK_RUN = re.compile(rf"[{CJK}]{{{SHORTEST_CJK},}}")


class TitleTypo(TitleKind):
    name = "title_typo"
    description = "a title with a typo"
    claim = "titles with a typo find their item"

    def changed(
        self, title: str, source: QueriedCatalog, rng: np.random.Generator
    ) -> Changed | None:
        if HAS_CJK(title):
            # Characters that sound alike in Chinese do not in Japanese.
            return _with_a_cjk_typo(title, {} if source.is_japanese else homophones(), rng)
        return _with_a_typo(title, source, rng)

    def carries(self, source: QueriedCatalog) -> frozenset[str]:
        return frozenset([SPELLING])


# --- words of letters ---


def _with_a_typo(title: str, source: QueriedCatalog, rng: np.random.Generator) -> Changed | None:
    words = title.split()
    places = [place for place, word in enumerate(words) if word.isalpha() and len(word) >= SHORTEST]
    if not places:
        return None
    place = places[rng.integers(len(places))]
    words[place] = mistyped(words[place], rng)
    # What is a word of the catalog is no typo.
    if source.with_words(words[place]):
        return None
    return Changed(" ".join(words), title)


def mistyped(word: str, rng: np.random.Generator) -> str:
    """Return a word with two letters swapped, or one dropped or doubled; never the first one.

    >>> mistyped("jacket", np.random.default_rng(3))
    'jackte'
    """
    place = int(rng.integers(1, len(word) - 1))
    before, letter, behind = word[:place], word[place], word[place + 1 :]
    error = rng.integers(3)
    if error == 0:
        return before + behind[:1] + letter + behind[1:]
    if error == 1 and len(word) >= SHORTEST_TO_DROP:
        return before + behind
    return before + letter + letter + behind


# --- Chinese, Japanese and Korean ---


def _with_a_cjk_typo(
    title: str, homophones: Mapping[str, str], rng: np.random.Generator
) -> Changed | None:
    runs = list(CJK_RUN.finditer(title))
    if not runs:
        return None
    run = runs[rng.integers(len(runs))]
    query = title[: run.start()] + mistyped_cjk(run[0], homophones, rng) + title[run.end() :]
    return Changed(query, title)


def mistyped_cjk(run: str, homophones: Mapping[str, str], rng: np.random.Generator) -> str:
    """Return characters with one that sounds the same, two swapped, or one missing.

    Whoever types Chinese by its sounds and takes the wrong one of the offered characters makes the
    first kind of error. The others are made where no character is known to sound like another.
    homophones: as the function of this name returns them.

    >>> mistyped_cjk("火锅英雄", homophones(), np.random.default_rng(2))
    '火英锅雄'
    """
    sounding_alike = [place for place, character in enumerate(run) if character in homophones]
    error = rng.integers(3)
    if error == 0 and sounding_alike:
        place = sounding_alike[rng.integers(len(sounding_alike))]
        others = homophones[run[place]]
        return run[:place] + others[rng.integers(len(others))] + run[place + 1 :]
    place = int(rng.integers(1, len(run) - 1))
    if error == 1 and len(run) >= SHORTEST_CJK_TO_DROP:
        return run[:place] + run[place + 1 :]
    return run[:place] + run[place + 1] + run[place] + run[place + 2 :]


@cache
def homophones() -> dict[str, str]:
    """Return the frequent characters that sound like a character, the tone aside, by character."""
    groups = Path(__file__).with_name("homophones.txt").read_text(encoding="utf-8").split()
    return {character: group.replace(character, "") for group in groups for character in group}
