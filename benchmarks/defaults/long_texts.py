"""From how many words on a text is searched in passages: the limit `LONG` of text/passages.py.

Abstracts of Cranfield and CISI, some of which have 250 to 700 words, are about one thing, and a
query describes it; every second query is asked, so that the others stay unseen. Pieces of
transcripts of 250 to 500 words are asked for by a part of the content words of one sentence, which
suits passages as much as a question can. All queries get hits.

QKVSEARCH_DATA=data python benchmarks --only long_texts    (fifteen minutes)
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from statistics import fmean
from tempfile import TemporaryDirectory
from unittest.mock import patch

import numpy as np
import pandas as pd

import qkvsearch as qkv
from benchmarks.claims.passages import one_line, texts_of
from benchmarks.support.public_data import JudgedTexts, cisi, cranfield, data_folder
from benchmarks.support.quality import ask
from benchmarks.support.results import Row
from benchmarks.support.script import main
from qkvsearch.evaluation.metrics import ndcg
from qkvsearch.text.analysis import Analyzer
from qkvsearch.text.passages import n_words, sentences
from qkvsearch.text.pretrained.fetch import find

SEED = 51
K = 10
LIMITS = (250, 300, 350, 400, 500, 1_000)
SHORTEST, LONGEST = 250, 500
N_QUESTIONS, SHARE = 200, 0.4


def by_limit(encoder: str) -> Iterator[Row]:
    if encoder != "corpus" and find(encoder) is None:
        return
    sets = {"Cranfield": half(cranfield()), "CISI": half(cisi()), "pieces of transcripts": pieces()}
    for name, data in sets.items():
        task = f"{name}, {len(data.queries)} queries, {encoder}"
        for limit in LIMITS:
            found = quality(data, encoder, limit)
            yield Row(task, f"passages over {limit} words", f"nDCG@{K}", found)


def half(data: JudgedTexts) -> JudgedTexts:
    """The same texts, and every second of the queries."""
    queries = dict(list(data.queries.items())[::2])
    return JudgedTexts(data.items, data.text, queries, data.judgements)


def quality(data: JudgedTexts, encoder: str, limit: int) -> float:
    """The mean over the queries that have a relevant item."""
    columns = qkv.Columns(id="id", text=data.text)
    judged = {query: text for query, text in data.queries.items() if data.judgements.get(query)}
    with (
        TemporaryDirectory() as place,
        patch("qkvsearch.text.passages.LONG", limit),
        qkv.build(place, items=data.items, columns=columns, encoder=encoder) as engine,
    ):
        found = ask(engine, None, K, judged.values(), anyway=True)
    grades = (data.judgements[query] for query in judged)
    return fmean(ndcg(ids, of, K) for ids, of in zip(found, grades, strict=True))


def pieces() -> JudgedTexts:
    """Pieces of the transcripts, and questions by a part of the words of one of their sentences."""
    rng, analyzer = np.random.default_rng(SEED), Analyzer()
    rows: list[dict[str, str]] = []
    asked: list[tuple[str, str]] = []
    for text in transcripts():
        for piece in cut(text, rng):
            id_ = str(len(rows))
            rows.append({"id": id_, "body": " ".join(piece)})
            words = [token.text for token in analyzer.query_tokens(rng.choice(piece))]
            if len(words) >= 10:
                kept = np.sort(rng.choice(len(words), round(SHARE * len(words)), replace=False))
                asked.append((" ".join(words[place] for place in kept), id_))
    drawn = [asked[number] for number in rng.choice(len(asked), N_QUESTIONS, replace=False)]
    queries = {str(number): text for number, (text, _) in enumerate(drawn)}
    judgements = {str(number): {id_: 1} for number, (_, id_) in enumerate(drawn)}
    return JudgedTexts(pd.DataFrame(rows), ("body",), queries, judgements)


def transcripts() -> Iterator[str]:
    """The texts of the episodes, as they were read."""
    with (
        TemporaryDirectory() as place,
        qkv.build(place, items=data_folder() / "transcripts", encoder="corpus") as engine,
    ):
        yield from texts_of(engine).values()


def cut(text: str, rng: np.random.Generator) -> Iterator[list[str]]:
    """Sentences one after another, so many that each piece has SHORTEST to LONGEST words."""
    piece: list[str] = []
    n_said, wanted = 0.0, rng.uniform(SHORTEST, LONGEST)
    for sentence in sentences(text):
        said = one_line(text[sentence.start : sentence.end])
        piece.append(said)
        n_said += n_words(said)
        if n_said > wanted:
            yield piece
            piece, n_said, wanted = [], 0.0, rng.uniform(SHORTEST, LONGEST)


PARTS = {encoder: partial(by_limit, encoder) for encoder in ("corpus", "static")}
# An hour.
EXTRA = {"minilm": partial(by_limit, "minilm")}

if __name__ == "__main__":
    main(__file__, PARTS, EXTRA)
