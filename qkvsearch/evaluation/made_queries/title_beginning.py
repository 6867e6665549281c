"""The first half of a title, as typed by somebody who remembers how it begins."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from qkvsearch.evaluation.made_queries.query_kind import MadeQuery, QueryKind, Source

# A half of a shorter title could be any item's.
MIN_WORDS = 4


class TitleBeginning(QueryKind):
    name = "title_beginning"
    description = "the first half of a title"

    def make(self, source: Source, rng: np.random.Generator) -> Iterator[MadeQuery]:
        for item in rng.permutation(source.n_items).tolist():
            words = source.titles[item].split()
            if len(words) >= MIN_WORDS:
                yield MadeQuery(self.name, " ".join(words[: len(words) // 2]), item)
