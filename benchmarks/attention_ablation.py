"""What contrastive training adds to an encoder learned from the catalogue, and what attention adds.

MRR@10 of queries that no encoder saw: alone, and beside words (lexical .4, encoder .6). Trained
ones: mean ± standard deviation over three seeds. Seconds are
those of one core. TED's dev queries; a sentence taken out of a Cranfield abstract asks for what is
left; half of a film's tags ask for its title, genres and other tags.

QKVSEARCH_DATA=data python benchmarks/attention_ablation.py [ted described cranfield films]
"""

from __future__ import annotations

import re
import sys
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from common import data_folder

from qkvsearch.data.judgements import read_judgements, read_queries
from qkvsearch.embeddings import ContrastiveEncoder, CooccurrenceEncoder, CorpusEncoder
from qkvsearch.learning.conditional_logit import standardised
from qkvsearch.learning.head_weights import lexical_keys
from qkvsearch.learning.judged_weights import lexical_scores
from qkvsearch.texts.encoders import Encoder
from qkvsearch.texts.item_keys import item_keys

SEEDS, K = (0, 1, 2), 10
# What words count beside an encoder.
LEXICAL = 0.4
ATTENTIONS = {"no attention": "none", "parameter-free": "free", "trained attention": "trained"}
# Films with fewer tags would ask by one word.
FEWEST_TAGS = 4


@dataclass(frozen=True)
class Task:
    """Columns to learn from, columns that are searched, queries with the rows of their answers."""

    name: str
    fields: list[list[str]]
    keys: list[list[str]]
    asked: list[tuple[str, int]]

    def texts(self) -> list[str]:
        return ["\n".join(fields) for fields in zip(*self.fields, strict=True)]

    def scores(self, encoder: Encoder) -> np.ndarray:
        queries = encoder.encode_many([text for text, _ in self.asked])
        return standardised(queries @ item_keys(encoder.encode_many, self.keys).T)

    def mrr(self, scores: np.ndarray) -> float:
        """MRR@10, ties by row."""
        found = np.argsort(-scores, axis=1, kind="stable") == [[row] for _, row in self.asked]
        return float((found[:, :K] / np.arange(1, K + 1)).sum(axis=1).mean())


def ted() -> Task:
    folder = data_folder() / "ted"
    talks = pd.read_csv(folder / "talks.csv", dtype=str, keep_default_na=False)
    rows = {talk: row for row, talk in enumerate(talks["id"])}
    answers = read_judgements(folder / "qrels_dev.tsv")
    queries = read_queries(folder / "queries_dev.tsv").items()
    asked = [(text, rows[str(*answers[query])]) for query, text in queries]
    columns = [list(talks["title"]), list(talks["tags"])]
    return Task("TED", columns, columns, asked)


def described() -> Task:
    """Half of the dev queries are a third column to learn from, the other half ask."""
    task = ted()
    known = np.random.default_rng(0).permutation(len(task.asked)) < len(task.asked) // 2
    descriptions = {task.asked[i][1]: task.asked[i][0] for i in np.flatnonzero(known)}
    asked = [task.asked[i] for i in np.flatnonzero(~known)]
    column = [descriptions.get(row, "") for row in range(len(task.keys[0]))]
    return Task("TED, half described", [*task.keys, column], task.keys, asked)


def cranfield() -> Task:
    rng = np.random.default_rng(0)
    titles, bodies, asked = [], [], []
    text = (data_folder() / "cranfield" / "cran.all.1400").read_text()
    for row, document in enumerate(re.split(r"^\.I \d+\n", text, flags=re.M)[1:]):
        head, body = (" ".join(part.split()) for part in document.split("\n.W\n", 1))
        titles.append(head.removeprefix(".T").split(" .A", 1)[0].strip())
        # The body repeats the title.
        sentences = body.removeprefix(titles[-1]).strip().split(" . ")
        long = [i for i, sentence in enumerate(sentences) if len(sentence.split()) >= 8]
        if len(sentences) >= 3 and long:
            asked.append((sentences.pop(rng.choice(long)), row))
        bodies.append(" . ".join(sentences))
    return Task("Cranfield", [titles, bodies], [titles, bodies], asked)


def films() -> Task:
    rng = np.random.default_rng(0)
    folder = data_folder() / "ml-latest-small"
    tags = pd.read_csv(folder / "tags.csv", dtype=str).groupby("movieId")["tag"]
    of_film = {film: sorted(set(some.str.lower())) for film, some in tags}
    table = pd.read_csv(folder / "movies.csv", dtype=str).query("movieId in @of_film")
    kept, asked = [], []
    for row, film in enumerate(table["movieId"]):
        some = list(rng.permutation(of_film[film]))
        n_asked = len(some) // 2 if len(some) >= FEWEST_TAGS else 0
        asked += [("; ".join(some[:n_asked]), row)] if n_asked else []
        kept.append("; ".join(some[n_asked:]))
    columns = [list(table["title"]), list(table["genres"].str.replace("|", "; ")), kept]
    return Task("Films", columns, columns, asked)


def estimators(seed: int) -> dict[str, Any]:
    return {"LSA": CorpusEncoder(), "PPMI": CooccurrenceEncoder()} | {
        f"contrastive, {name}": ContrastiveEncoder(attention=attention, random_state=seed)
        for name, attention in ATTENTIONS.items()
    }


def figures(task: Task, estimator: Any, words: np.ndarray) -> list[float]:
    """MRR alone, beside words; epochs; seconds to fit."""
    is_trained = isinstance(estimator, ContrastiveEncoder)
    began = time.process_time()
    estimator.fit(task.fields if is_trained else task.texts())
    took = time.process_time() - began
    scores = task.scores(estimator.encoder_)
    fused = LEXICAL * words + (1 - LEXICAL) * scores
    return [*map(task.mrr, (scores, fused)), estimator.n_epochs_ if is_trained else 0, took]


def main() -> None:
    print("| catalogue, queries | encoder | alone | beside words | epochs | seconds |")
    print("| --- " * 6 + "|")
    for make in (ted, described, cranfield, films):
        if sys.argv[1:] and make.__name__ not in sys.argv[1:]:
            continue
        task = make()
        words = standardised(
            lexical_scores(lexical_keys(task.keys), [text for text, _ in task.asked])
        )
        print(f"| {task.name}, {len(task.asked)} | words | {task.mrr(words):.3f} | | | |")
        for name in estimators(seed=0):
            seeds = SEEDS if name.startswith("contrastive") else SEEDS[:1]
            runs = [figures(task, estimators(seed)[name], words) for seed in seeds]
            *ranks, epochs, seconds = np.array(runs).T
            shown = [f"{x.mean():.3f}" + f" ± {x.std():.3f}" * (len(x) > 1) for x in ranks]
            shown.append(", ".join(f"{n:.0f}" for n in epochs if n))
            print(f"| | {name} | {' | '.join(shown)} | {seconds.mean():.1f} |", flush=True)


if __name__ == "__main__":
    main()
