"""Search by defaults with each encoder, beside bm25s and a bare sentence encoder, judged queries;
then the speed of its two kinds of keys on large catalogues. The README's table of searching.

TED: titles and tags are searched for the first sentence of a talk's description. Cranfield:
abstracts, judged by engineers. Weights were chosen on TED's dev queries and on queries made of
texts (search_defaults.py); both sets of test queries are reported as they are.

QKVSEARCH_DATA=data python benchmarks/search.py
(minutes; peers: pip install bm25s sentence-transformers faiss-cpu; minilm where it is installed)
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import dense_search
import lexical_speed
import pandas as pd
from common import Row, System, ask, compare, data_folder, installed, mean_over, print_table

import qkvsearch as qkv
from qkvsearch.data.columns import Columns
from qkvsearch.data.ids import Id
from qkvsearch.data.judgements import Judgements, Queries, read_judgements, read_queries
from qkvsearch.evaluation.metrics import ndcg, reciprocal_rank
from qkvsearch.texts.analysis import stem
from qkvsearch.texts.encoders import CHOICES
from qkvsearch.texts.pretrained.fetch import find

K, TURNS = 10, 3

# Texts of queries to the ids of each one's hits.
Answers = Callable[[list[str]], list[list[Id]]]


def ted() -> list[Row]:
    folder = data_folder() / "ted"
    talks = pd.read_csv(folder / "talks.csv", keep_default_na=False, dtype=str)
    queries = read_queries(folder / "queries_test.tsv")
    judgements = read_judgements(folder / "qrels_test.tsv")
    task = f"TED talks, known item, {len(queries):,} test queries; a query"
    return claim(task, talks, ("title", "tags"), queries, judgements, "MRR", reciprocal_rank)


def cranfield() -> list[Row]:
    folder = data_folder() / "cranfield"
    texts = read_smart(folder / "cran.all.1400")
    rows = [
        {"id": i, "title": text["T"] or "?", "body": text["W"]} for i, text in enumerate(texts, 1)
    ]
    # The judgements number the queries by their order.
    queries = {str(i): text["W"] for i, text in enumerate(read_smart(folder / "cran.qry"), 1)}
    judgements: Judgements = {}
    with (folder / "cranqrel").open() as lines:
        for query, item, grade, *_ in map(str.split, lines):
            if int(grade) > 0:
                judgements.setdefault(query, {})[item] = 1
    task = f"Cranfield, {len(queries)} judged queries; a query"
    frame = pd.DataFrame(rows).astype(str)
    return claim(task, frame, ("title", "body"), queries, judgements, "nDCG", ndcg)


def read_smart(path: Path) -> list[dict[str, str]]:
    """The records of a file in SMART's layout: `.I` begins one, `.T` and `.W` its parts."""
    records = re.split(r"^\.I.*\n", path.read_text("latin-1"), flags=re.MULTILINE)[1:]
    return [
        {
            part[0]: " ".join(part[1:].split())
            for part in re.split(r"^\.(?=[A-Z]$)", record, flags=re.M)
            if part
        }
        for record in records
    ]


def claim(
    task: str,
    frame: pd.DataFrame,
    text: tuple[str, ...],
    queries: Queries,
    judgements: Judgements,
    metric: str,
    measure: Callable[..., float],
) -> list[Row]:
    """Every encoder's build by its defaults, then the peers, on the same texts."""
    with TemporaryDirectory() as place:
        contenders = []
        for choice in reversed(CHOICES):
            if choice != "corpus" and find(choice) is None:
                continue
            columns = Columns(id="id", title="title", text=text)
            engine = qkv.build(Path(place, choice), items=frame, columns=columns, encoder=choice)
            contenders.append(System(f"qkvsearch, {choice}", partial(ask, engine, None, K)))
        contenders.append(System("qkvsearch, lexical alone", partial(ask, engine, ["lexical"], K)))
        texts = frame[list(text)].agg("\n".join, axis=1).tolist()
        contenders += peers(texts, frame["id"].tolist())
        judge = mean_over(measure, K, queries, judgements)
        turns = [list(queries.values())] * TURNS
        return compare(task, contenders, turns, f"{metric}@{K}", judge, per=len(queries))


def peers(texts: list[str], ids: list[Id]) -> Iterator[System]:
    if installed("bm25s"):
        yield System("`bm25s`, stems", bm25s_answers(texts, ids, "en"))
        yield System("`bm25s`, stems, longer stop list", bm25s_answers(texts, ids, "en_plus"))
    if installed("sentence-transformers") and find("minilm"):
        yield System("`sentence-transformers`, minilm alone", sentence_answers(texts, ids))


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
    from encode import sentence_transformer

    model = sentence_transformer()
    keys: Any = model.encode(texts, show_progress_bar=False)

    def find_one(text: str) -> list[Id]:
        scores = keys @ model.encode(text, show_progress_bar=False)
        return [ids[position] for position in (-scores).argsort()[:K]]

    return lambda queries: [find_one(text) for text in queries]


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        large = dense_search.claims(Path(folder))
        print_table([ted, cranfield, lexical_speed.claim, *large])
