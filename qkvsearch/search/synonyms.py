"""What the owner of a catalog says that words are called as well, beside a query's own words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from qkvsearch.data.synonyms import FACT
from qkvsearch.index import StoredModels
from qkvsearch.retrieval.keys import Expansion, QueryTerm
from qkvsearch.text.analysis import Token, fold

# What a synonym counts beside the word as it was typed.
SYNONYM = 0.8


@dataclass(frozen=True)
class OwnSynonyms:
    """Those of a build."""

    models: StoredModels

    @cached_property
    def _by_text(self) -> Mapping[str, list[str]]:
        given: Mapping[str, list[str]] = self.models.snapshot.facts.get(FACT, {})
        return {fold(text): others for text, others in given.items()}

    @cached_property
    def _by_terms(self) -> dict[tuple[str, ...], list[str]]:
        found: dict[tuple[str, ...], list[str]] = {}
        for text, others in self._by_text.items():
            terms = tuple(token.term for token in self.models.analyzer.tokens(text))
            found.setdefault(terms, []).extend(others)
        return found

    def of(self, word: str) -> Sequence[str]:
        """Those of a word, folded."""
        return self._by_text.get(word, ())

    def one_word(self, token: Token) -> Iterator[Expansion]:
        """Of a word, those that are one word, too: they are found in its place."""
        for other in self._by_terms.get((token.term,), ()):
            own = self.models.analyzer.tokens(other)
            if len(own) == 1:
                yield Expansion(own[0].term, own[0].text, SYNONYM)

    def longer(self, text: str) -> Iterator[QueryTerm]:
        """Those of several words, or for several: words of their own, which share the weight."""
        if not self._by_terms:
            return
        analyzer = self.models.analyzer
        tokens = analyzer.tokens(text)
        longest = max(map(len, self._by_terms))
        for start in range(len(tokens)):
            for n in range(1, min(longest, len(tokens) - start) + 1):
                there = tokens[start : start + n]
                for other in self._by_terms.get(tuple(token.term for token in there), ()):
                    own = analyzer.query_tokens(other)
                    if n > 1 or len(own) > 1:
                        typed = " ".join(token.text for token in there)
                        label = f"{typed} → {other} ×{SYNONYM:.2g}"
                        weight = SYNONYM * n / max(len(own), 1)
                        yield from (
                            QueryTerm(label, (Expansion(token.term, token.text, weight),))
                            for token in own
                        )
