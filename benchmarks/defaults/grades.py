"""What the grades of hits are computed by: a logistic regression fitted on TED's dev queries.

The first hit of each query, by three encoders, is right or not. Four numbers say how likely it is
(`qkvsearch/rank/grades.py`). From the probability `STRONG` on, four of five first hits are right
with each encoder, and half of the right ones are strong; below `WEAK` is one of twenty right ones.

`qkvsearch/rank/grades.json` keeps the factors of an earlier fit, before the weights of heads
changed for the last time: lead 6.818, share 2.545, words 1.069, rank −.588, intercept −5.375.
`match_grades` measures these. Factors and bounds are renewed together, by `--write` and on dev
queries.

QKVSEARCH_DATA=data python benchmarks --only grades    (two minutes; needs static and minilm)
QKVSEARCH_DATA=data python -m benchmarks.defaults.grades --write    (and keeps them)
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from scipy.optimize import minimize

import qkvsearch as qkv
from benchmarks.support.public_data import ted
from benchmarks.support.results import Row
from benchmarks.support.script import main
from qkvsearch.rank import grades
from qkvsearch.rank.grades import Grader, Numbers, QueryWords

ENCODERS = ("corpus", "static", "minilm")
STRONG, WEAK = 0.645, 0.166


def first_hits(encoder: str) -> tuple[np.ndarray, np.ndarray]:
    """The numbers of the first hits of TED's dev queries, (n, 4), and whether each is right."""
    data = ted("dev")
    columns = qkv.Columns(id="id", title="title", text=data.text)
    rows, right = [], []
    with TemporaryDirectory() as folder:
        engine = qkv.build(Path(folder, "ted"), items=data.items, columns=columns, encoder=encoder)
        models = engine.models
        for id_, text in data.queries.items():
            ranking = engine.search(text, k=1)
            if not ranking:
                continue
            query = engine.texts.reader.read(text)
            tokens = models.analyzer.tokens(query.understood.text)
            positions = ranking.positions
            words = QueryWords.of(
                models.lexical_keys, models.words, query.lookup, tokens, positions
            )
            assert ranking.head is not None
            numbers = grades.numbers(models, words, ranking.head, positions)
            rows.append([float(values[0]) for values in numbers])
            right.append(str(ranking[0].id) in data.judgements[id_])
    return np.array(rows), np.array(right)


def fitted(rows: np.ndarray, right: np.ndarray) -> Grader:
    """Fit the regression."""
    mean, deviation = rows.mean(axis=0), rows.std(axis=0)
    standard = (rows - mean) / deviation
    sides = np.where(right, 1.0, -1.0)

    def loss(line: np.ndarray) -> float:
        margins = sides * (standard @ line[1:] + line[0])
        return float(np.logaddexp(0, -margins).sum() + line[1:] @ line[1:] / 2)

    line = minimize(loss, np.zeros(rows.shape[1] + 1), method="L-BFGS-B").x
    factors = line[1:] / deviation
    intercept = float(line[0] - factors @ mean)
    named = dict(zip(Numbers._fields, np.round(factors, 3).tolist(), strict=True))
    return Grader(named, round(intercept, 3), STRONG, WEAK)


def fit() -> list[Row]:
    found = [first_hits(encoder) for encoder in ENCODERS]
    grader = fitted(*map(np.concatenate, zip(*found, strict=True)))
    if "--write" in sys.argv:
        path = Path(grades.__file__).with_name("grades.json")
        path.write_text(json.dumps(asdict(grader), indent=2) + "\n", encoding="utf-8")
    task = "Grades, fitted on TED's dev queries"
    rows = [Row(task, f"factor of {name}", "value", of) for name, of in grader.factors.items()]
    rows.append(Row(task, "intercept", "value", grader.intercept))
    for encoder, (numbers, right) in zip(ENCODERS, found, strict=True):
        probabilities = grader.probabilities(Numbers(*numbers.T))
        is_strong, is_weak = probabilities >= STRONG, probabilities < WEAK
        shares = {
            "strong hits that are right": right[is_strong].mean(),
            "right hits that are strong": is_strong[right].mean(),
            "wrong hits that are weak": is_weak[~right].mean(),
            "right hits that are weak": is_weak[right].mean(),
        }
        rows += [Row(f"{task}: {encoder}", name, "share", float(of)) for name, of in shares.items()]
    return rows


PARTS = {"fit": fit}

if __name__ == "__main__":
    if "--write" in sys.argv:
        fit()
    else:
        main(__file__, PARTS)
