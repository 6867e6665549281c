"""Single Chinese characters of a short query, which items have as words or within words.

A query in Chinese is looked up by pairs of characters, since a single one is in nearly every long
text. But 碗 is a word as well, and somebody who types 茶碗 or 喝茶的碗 also means it. So of a short
query

| a character | counts in an item |
|---|---|
| of any pair | that has it as a word of a short text, such as the title 碗 |
| of no pair that a text has | that has it within a word of a short text, such as the title 青花碗 |

It counts `WEIGHT` times what it would count if it were typed alone. To the grade of a hit, only
what it has as a word counts.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from qkvsearch._utils.caching import cached_property
from qkvsearch._utils.query_lock import pause
from qkvsearch._utils.scripts import HAN
from qkvsearch.heads.bm25 import TermKeys
from qkvsearch.heads.unit_phrases import UnitRow, covered_units, units_of
from qkvsearch.heads.word_index import WordIndex
from qkvsearch.scores.components import Components, ScoreComponent
from qkvsearch.scores.fusion import Scores
from qkvsearch.text.analysis import Token

# Longer queries have enough pairs.
MAX_UNITS = 12
# How much a character counts beside a pair.
WEIGHT = 0.5
# In a text of more words it is by chance that a character is there.
SHORT = 30
# A query of so few is answered by an item that has one of them as a word.
FEW_UNITS = 4
# One of more than two is answered by an item that has this share of them, and at least two.
ENOUGH = 0.5
# Characters that say nothing alone.
PARTICLES = frozenset(
    "的了着吗呢吧啊呀嘛么之与和及或在是有我你您他她它们这那哪谁什怎为不也就都很最从到把被给对于以而则个只些一"
)


@dataclass(frozen=True)
class SingleUnits:
    """The characters of a short query that are looked up by themselves."""

    # Those of all its pairs, without particles such as 的.
    units: Sequence[str]
    # Those that are in none of its pairs that a text has.
    loose: frozenset[str]
    keys: TermKeys
    index: WordIndex

    @classmethod
    def of(cls, keys: TermKeys, index: WordIndex, tokens: Sequence[Token]) -> SingleUnits | None:
        """Return the characters of a query; None where none is looked up by itself."""
        pairs = [token for token in tokens if _is_pair(token)]
        if not pairs or len(UnitRow.of(tokens).units) > MAX_UNITS:
            return None
        in_known = {unit for pair in pairs if keys.has(pair.term) for unit in units_of(pair.text)}
        distinct = dict.fromkeys(unit for pair in pairs for unit in units_of(pair.text))
        units = [unit for unit in distinct if re.match(HAN, unit) and unit not in PARTICLES]
        if not units:
            return None
        return cls(units, frozenset(units) - in_known, keys, index)

    @cached_property
    def as_words(self) -> dict[str, np.ndarray]:
        """The items that have each character as a word of its own, ascending."""
        return {unit: as_word for unit, (as_word, _) in self._found.items()}

    @cached_property
    def _found(self) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        found = {}
        for unit in self.units:
            pause()
            found[unit] = self.index.with_unit(unit, SHORT, unit in self.loose)
        return found

    @cached_property
    def _items(self) -> dict[str, np.ndarray]:
        """The items in which each character counts, ascending."""
        return {
            unit: np.union1d(as_word, in_short) if unit in self.loose else as_word
            for unit, (as_word, in_short) in self._found.items()
        }

    def scores(self, name: str) -> Scores | None:
        """Return what the characters add to the scores of all items; None where no item has any."""
        added: dict[str, tuple[np.ndarray, np.ndarray]] = {}
        for unit, counts_in in self._items.items():
            if not len(counts_in):
                continue
            items, weights = self.keys.postings(unit)
            places = _places(counts_in, items)
            if len(places):
                added[unit] = items[places], np.float32(WEIGHT) * weights[places]
        if not added:
            return None
        scores = np.zeros(self.keys.n_items, np.float32)
        for items, weights in added.values():
            scores[items] += weights

        def parts(position: int) -> Components:
            components = []
            for unit, (items, weights) in added.items():
                slot = int(items.searchsorted(position))
                if slot < len(items) and items[slot] == position:
                    components.append(ScoreComponent(name, unit, unit, float(weights[slot])))
            return Components.of(components)

        return Scores(name, scores, parts, covered=scores > 0)

    @property
    def largest(self) -> dict[str, float]:
        """The most that the loose characters, as one word, would add if they were typed alone."""
        return {"".join(sorted(self.loose)): sum(map(self.keys.largest, self.loose))}

    def is_answered(self, tokens: Sequence[Token]) -> bool:
        """Return whether an item has enough of the characters.

        tokens: the words of the query.
        """
        if len(self.units) <= FEW_UNITS and any(len(self.as_words[unit]) for unit in self.loose):
            return True
        row = UnitRow.of(tokens)
        covered = covered_units(self.keys, tokens, row)
        for unit in self.loose:
            covered[self._items[unit]] += 1
        n_units = sum(unit not in PARTICLES for unit in row.units)
        return n_units > 2 and bool(covered.max(initial=0) >= max(2, ENOUGH * n_units))


def _places(values: np.ndarray, array: np.ndarray) -> np.ndarray:
    """Return where those of some values are that an ascending array has.

    >>> _places(np.array([1, 4, 9]), np.array([0, 4, 5])).tolist()
    [1]
    """
    values = values.astype(array.dtype)  # others would be compared with a copy of the array
    places = array.searchsorted(values)
    places[places == len(array)] = 0
    return places[array[places] == values] if len(array) else places[:0]


def _is_pair(token: Token) -> bool:
    return not token.text.isascii() and len(units_of(token.text)) == 2
