"""Heads alone and all together, on nine collections: how far the fusion is below its best head.

TED's dev queries and those of Cranfield with even numbers are judged by people, and so are the
bundled queries. The others are made, and known items answer them: the first sentence of a video's
description (titles and tags are searched), the title of a video (tags), the title of an abstract
(the rest of it), two words of a film's or a game's title (not those that 1 % of the titles have;
each title with both is right), and the first sentence of a function's documentation in NumPy,
SciPy, scikit-learn and pandas (its name and the rest). At most 400 queries of each.

QKVSEARCH_DATA=data python benchmarks --only regret_of_fusion    (a quarter of an hour)
"""

from __future__ import annotations

import inspect
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd

import qkvsearch as qkv
from benchmarks.support.public_data import JudgedTexts, cranfield, data_folder, ted
from benchmarks.support.quality import ask, mean_over
from benchmarks.support.results import Row
from benchmarks.support.script import main
from qkvsearch.evaluation.metrics import ndcg, reciprocal_rank
from qkvsearch.tables.judgements import read_judgements, read_queries
from qkvsearch.tables.samples import datasets_folder
from qkvsearch.text.encoders import CHOICES
from qkvsearch.text.pretrained.fetch import find

K, N_QUERIES, SEED = 10, 400, 37
MODULES = (
    *("numpy", "numpy.linalg", "numpy.ma", "pandas"),
    *(f"scipy.{name}" for name in ("fft", "integrate", "interpolate", "linalg", "ndimage")),
    *(f"scipy.{name}" for name in ("optimize", "signal", "sparse", "special", "stats")),
    *(f"sklearn.{name}" for name in ("cluster", "datasets", "decomposition", "ensemble")),
    *(f"sklearn.{name}" for name in ("linear_model", "metrics", "model_selection", "neighbors")),
    *(f"sklearn.{name}" for name in ("preprocessing", "utils")),
)


def some_of(data: JudgedTexts, is_asked: Callable[[str], bool] = lambda query: True) -> JudgedTexts:
    """At most 400 of the judged queries."""
    ids = [query for query in data.queries if query in data.judgements and is_asked(query)]
    chosen = np.random.default_rng(SEED).permutation(len(ids))[:N_QUERIES]
    queries = {ids[row]: data.queries[ids[row]] for row in sorted(chosen)}
    return JudgedTexts(data.items, data.text, queries, data.judgements)


def known_items(columns: Mapping[str, Sequence[str]], queries: Iterable[str]) -> JudgedTexts:
    """Items of which each is asked for by its own query; none by an empty one."""
    table = pd.DataFrame({"title": "", **columns})
    table.insert(0, "id", [str(row) for row in range(len(table))])
    asked = {str(row): query for row, query in enumerate(queries) if query}
    return some_of(JudgedTexts(table, tuple(columns), asked, {row: {row: 1} for row in asked}))


def two_words(titles: Iterable[str]) -> JudgedTexts:
    table = pd.DataFrame({"title": [*titles]})
    table.insert(0, "id", [str(row) for row in range(len(table))])
    words = [set(re.findall(r"[a-z]{3,}", title.lower())) for title in table["title"]]
    counts, rng = Counter(word for of in words for word in of), np.random.default_rng(SEED)
    judgements: dict[str, dict[str, int]] = {}
    for row in rng.permutation(len(words)).tolist():
        rare = sorted(word for word in words[row] if counts[word] < 0.01 * len(words))
        if len(rare) > 1 and len(judgements) < N_QUERIES:
            two = rng.permutation(rare)[:2].tolist()
            right = {str(other): 1 for other, of in enumerate(words) if of.issuperset(two)}
            judgements[" ".join(two)] = right
    return JudgedTexts(table, ("title",), {text: text for text in judgements}, judgements)


def videos(year: int) -> pd.DataFrame:
    path = data_folder() / "youtube" / f"USvideos_{year}.csv"
    table = pd.read_csv(path, dtype=str, keep_default_na=False).drop_duplicates("video_id")
    table["tags"] = table["tags"].str.replace('"', "").str.replace("|", ", ")
    return table


def described_videos() -> JudgedTexts:
    table = videos(2018)
    sentences = map(_first_sentence, table["description"])
    return known_items(
        {"title": table["title"].tolist(), "tags": table["tags"].tolist()}, sentences
    )


def _first_sentence(text: str) -> str:
    """The first sentence of at least five words in a line without a link."""
    lines = (line.strip() for line in text.replace("\\n", "\n").split("\n") if "http" not in line)
    return next((re.split(r"(?<=[.!?])\s", s)[0] for s in lines if len(s.split()) > 4), "")


def tagged_videos() -> JudgedTexts:
    table = videos(2017)
    has_tags = table["tags"].str.split().str.len() > 5
    return known_items({"tags": table["tags"].tolist()}, table["title"].where(has_tags, ""))


def abstracts() -> JudgedTexts:
    rows = cranfield().items[["title", "body"]].itertuples(index=False)
    texts = [(title, body.removeprefix(title)) for title, body in rows]
    queries = (title if len(body.split()) > 20 else "" for title, body in texts)
    return known_items({"body": [body for _, body in texts]}, queries)


def functions() -> JudgedTexts:
    texts: dict[str, str] = {}
    for module in map(import_module, MODULES):
        for name, thing in inspect.getmembers(module, callable):
            members = inspect.getmembers(thing, callable) if inspect.isclass(thing) else []
            for part, of in [("", thing), *members]:
                text = inspect.getdoc(of) or ""
                if not (name.startswith("_") or part.startswith("_")) and len(text.split()) > 60:
                    texts.setdefault(text, f"{name}.{part}" if part else name)
    names, bodies, queries = [], [], []
    for text, name in texts.items():
        head, _, body = text.partition("\n\n")
        if "(" in head and body:  # a signature
            head, _, body = body.partition("\n\n")
        names.append(name)
        bodies.append(body[:1500])
        queries.append(" ".join(head.split()) if 3 <= len(head.split()) <= 25 else "")
    return known_items({"title": names, "body": bodies}, queries)


def bundled() -> JudgedTexts:
    table = pd.read_csv(datasets_folder() / "videos.csv", dtype=str, keep_default_na=False)
    queries = read_queries(datasets_folder() / "queries.tsv")
    judgements = read_judgements(datasets_folder() / "qrels.tsv")
    return JudgedTexts(table, ("title", "tags", "description"), queries, judgements)


def films() -> JudgedTexts:
    return two_words(pd.read_csv(data_folder() / "ml-latest-small" / "movies.csv")["title"])


def games() -> JudgedTexts:
    return two_words(pd.read_csv(data_folder() / "steam" / "item_info.dat", sep="\t").iloc[:, 1])


COLLECTIONS: Mapping[str, tuple[Callable[[], JudgedTexts], Callable[..., float]]] = {
    "TED, dev queries": (lambda: some_of(ted("dev")), reciprocal_rank),
    "Cranfield, half": (lambda: some_of(cranfield(), lambda query: int(query) % 2 == 0), ndcg),
    "abstracts by their titles": (abstracts, reciprocal_rank),
    "videos by their descriptions": (described_videos, reciprocal_rank),
    "videos by their titles": (tagged_videos, reciprocal_rank),
    "films by two words": (films, reciprocal_rank),
    "games by two words": (games, reciprocal_rank),
    "functions by their summaries": (functions, reciprocal_rank),
    "bundled queries": (bundled, ndcg),
}


def regret(encoder: str) -> list[Row]:
    if encoder != "corpus" and find(encoder) is None:
        return []
    rows = []
    for name, (read, measure) in COLLECTIONS.items():
        data = read()
        texts = list(data.queries.values())
        judge = mean_over(measure, K, data.queries, data.judgements)
        columns = qkv.Columns(id="id", title="title", text=data.text)
        with (
            TemporaryDirectory() as folder,
            qkv.build(
                Path(folder, "build"), items=data.items, columns=columns, encoder=encoder
            ) as engine,
        ):
            weights = engine.models.head_weights
            together = judge([ask(engine, None, K, texts)])
            alone = {head: judge([ask(engine, [head], K, texts)]) for head in weights}
        task = f"{name}, {encoder}"
        metric = f"{measure.__name__.replace('reciprocal_rank', 'MRR').replace('ndcg', 'nDCG')}@{K}"
        rows.append(Row(task, "together", metric, together))
        rows += [Row(task, f"{head} alone", metric, value) for head, value in alone.items()]
        print(
            f"{task}: {together:.4f}, below the best head {max(alone.values()) - together:+.4f}, "
            f"below words {alone['lexical'] - together:+.4f}; "
            + ", ".join(f"{head} {alone[head]:.4f} × {w:.3f}" for head, w in weights.items()),
            flush=True,
        )
    return rows


PARTS = {choice: partial(regret, choice) for choice in CHOICES}

if __name__ == "__main__":
    main(__file__, PARTS)
