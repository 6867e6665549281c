"""A title with a word replaced by one of the owner's synonyms."""

from __future__ import annotations

import numpy as np

from qkvsearch.evaluation.made_queries.query_kind import SYNONYMS
from qkvsearch.evaluation.made_queries.source import QueriedCatalog
from qkvsearch.evaluation.made_queries.title_words import Changed, TitleKind


class TitleSynonym(TitleKind):
    name = "title_synonym"
    description = "a title with a word replaced by one of your synonyms"
    claim = "titles with a synonym find their item"

    def changed(
        self, title: str, source: QueriedCatalog, rng: np.random.Generator
    ) -> Changed | None:
        synonyms = source.build.texts.reader.lexicon.synonyms
        spans = source.analyzer.token_spans(title)
        tokens = source.analyzer.tokens(title)
        replaceable = [
            (span, others)
            for span, token in zip(spans, tokens, strict=True)
            if (others := synonyms.of(token.text))
        ]
        if not replaceable:
            return None
        (start, end), others = replaceable[rng.integers(len(replaceable))]
        other = others[int(rng.integers(len(others)))]
        return Changed(title[:start] + other + title[end:], title)

    def carries(self, source: QueriedCatalog) -> frozenset[str]:
        return frozenset([SYNONYMS])
