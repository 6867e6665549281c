"""What encoders learn from a part of a catalog: the limit `MAX_WORDS` of text/learned/sample.py.

The catalog's own encoders learn from all words of a small catalog, and from a part of a large one.
Here the limit is a share of a catalog's words, all of which are far below it; every second query of
Cranfield and CISI is asked, TED's dev queries, and parts of sentences of transcripts. All queries
get hits. A part of a catalog of so few words teaches less than a part of one of millions does: what
is lost here is more than a large catalog loses.

QKVSEARCH_DATA=data python benchmarks --only part_learned_from    (six minutes)
"""

from __future__ import annotations

from collections.abc import Iterator
from statistics import fmean
from tempfile import TemporaryDirectory
from unittest.mock import patch

import qkvsearch as qkv
from benchmarks.defaults.long_texts import half, pieces
from benchmarks.support.public_data import JudgedTexts, cisi, cranfield, ted
from benchmarks.support.quality import ask
from benchmarks.support.results import Row
from benchmarks.support.script import main
from qkvsearch.evaluation.metrics import ndcg
from qkvsearch.text.analysis import Analyzer
from qkvsearch.text.analyzed import AnalyzedTexts

K = 10
SHARES = (1.0, 0.5, 0.25)
HEADS = {"lsa alone": ["lsa"], "contrastive alone": ["contrastive"], "as built": None}


def by_share() -> Iterator[Row]:
    sets = {
        "Cranfield": half(cranfield()),
        "CISI": half(cisi()),
        "TED": ted("dev"),
        "pieces of transcripts": pieces(),
    }
    for name, data in sets.items():
        n_words = words_in(data)
        task = f"{name}, {n_words:,} words, {len(data.queries)} queries, corpus"
        for share in SHARES:
            for system, quality in qualities(data, round(share * n_words)).items():
                yield Row(task, f"{share:.0%}, {system}", f"nDCG@{K}", quality)


def words_in(data: JudgedTexts) -> int:
    columns = [data.items[name].fillna("").astype(str) for name in data.text]
    return sum(int(texts.n_tokens.sum()) for texts in AnalyzedTexts.of_columns(columns, Analyzer()))


def qualities(data: JudgedTexts, limit: int) -> dict[str, float]:
    """The mean over the queries that have a relevant item."""
    columns = qkv.Columns(id="id", text=data.text)
    judged = {query: text for query, text in data.queries.items() if data.judgements.get(query)}
    grades = [data.judgements[query] for query in judged]
    with (
        TemporaryDirectory() as place,
        patch("qkvsearch.text.learned.sample.MAX_WORDS", limit),
        qkv.build(place, items=data.items, columns=columns, encoder="corpus") as engine,
    ):
        return {
            system: fmean(
                ndcg(ids, of, K)
                for ids, of in zip(
                    ask(engine, heads, K, judged.values(), anyway=True), grades, strict=True
                )
            )
            for system, heads in HEADS.items()
        }


PARTS = {"by-share": by_share}

if __name__ == "__main__":
    main(__file__, PARTS)
