"""Search by defaults with each encoder, beside bm25s and a bare sentence encoder, judged queries.

TED: titles and tags are searched for the first sentence of a talk's description. Cranfield:
abstracts, judged by engineers. Weights were chosen on TED's dev queries and on queries made of
texts (`search_defaults`); both sets of test queries are reported as they are. A better ranking
costs time: five heads, a transformer and a second pass take what a person does not notice and a
benchmark does.

QKVSEARCH_DATA=data python benchmarks --only text_search
(ten minutes, most of them minilm's; peers: pip install bm25s sentence-transformers)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import qkvsearch as qkv
from benchmarks.support.public_data import JudgedTexts, cranfield, ted
from benchmarks.support.quality import ask, mean_over
from benchmarks.support.results import Row, installed
from benchmarks.support.script import main
from benchmarks.support.sentence_peer import NAME, is_here, sentence_transformer
from benchmarks.support.timing import System, compare
from qkvsearch.evaluation.metrics import ndcg, reciprocal_rank
from qkvsearch.tables.ids import Id
from qkvsearch.text.analysis import stem
from qkvsearch.text.encoders import CHOICES
from qkvsearch.text.pretrained.fetch import find

K = 10

# Texts of queries to the ids of each one's hits.
Answers = Callable[[list[str]], list[list[Id]]]


def talks() -> list[Row]:
    data = ted("test")
    task = f"TED talks, known item, {len(data.queries):,} test queries; a query"
    return search(task, data, "MRR", reciprocal_rank, turns=1)


def abstracts() -> list[Row]:
    data = cranfield()
    task = f"Cranfield, {len(data.queries)} judged queries; a query"
    return search(task, data, "nDCG", ndcg, turns=3)


def search(
    task: str, data: JudgedTexts, metric: str, measure: Callable[..., float], turns: int
) -> list[Row]:
    """Every encoder's build by its defaults, then the peers, on the same texts."""
    columns = qkv.Columns(id="id", title="title", text=data.text)
    with TemporaryDirectory() as place:
        contenders = []
        for choice in reversed(CHOICES):
            if choice != "corpus" and find(choice) is None:
                continue
            engine = qkv.build(
                Path(place, choice), items=data.items, columns=columns, encoder=choice
            )
            contenders.append(System(f"qkvsearch, {choice}", partial(ask, engine, None, K)))
        contenders.append(System("qkvsearch, lexical alone", partial(ask, engine, ["lexical"], K)))
        texts = data.items[list(data.text)].agg("\n".join, axis=1).tolist()
        contenders += peers(texts, data.items["id"].tolist())
        judge = mean_over(measure, K, data.queries, data.judgements)
        queries = list(data.queries.values())
        return compare(
            task, contenders, [queries], f"{metric}@{K}", judge, turns=turns, per=len(queries)
        )


def peers(texts: list[str], ids: list[Id]) -> Iterator[System]:
    if installed("bm25s"):
        yield System("`bm25s`, stems", bm25s_answers(texts, ids, "en"))
        yield System("`bm25s`, stems, longer stop list", bm25s_answers(texts, ids, "en_plus"))
    if is_here():
        yield System(f"`{NAME}`, minilm alone", sentence_answers(texts, ids))


def bm25s_answers(texts: list[str], ids: list[Id], stop_words: str) -> Answers:
    """An index of the same texts, with the stems that ours uses, which remembers them."""
    import bm25s

    tokens = partial(
        bm25s.tokenize,
        stopwords=stop_words,
        stemmer=lambda words: [stem(word) for word in words],
        show_progress=False,
    )
    index = bm25s.BM25()
    index.index(tokens(texts), show_progress=False)

    def find_one(text: str) -> list[Id]:
        found, _ = index.retrieve(tokens(text), k=K, show_progress=False)
        return [ids[position] for position in found[0]]

    return lambda queries: [find_one(text) for text in queries]


def sentence_answers(texts: list[str], ids: list[Id]) -> Answers:
    model = sentence_transformer()
    keys: Any = model.encode(texts, show_progress_bar=False)

    def find_one(text: str) -> list[Id]:
        scores = keys @ model.encode(text, show_progress_bar=False)
        return [ids[position] for position in (-scores).argsort()[:K]]

    return lambda queries: [find_one(text) for text in queries]


PARTS = {"ted": talks, "cranfield": abstracts}

if __name__ == "__main__":
    main(__file__, PARTS, peers=["bm25s", NAME])
