"""Search as people type: judged queries as they are, and with one typo each.

TED's dev queries are those that defaults may be chosen on; the test queries are in `text_search`,
queries that nothing answers in `answerability`, the bundled ones in `sample_search`.

QKVSEARCH_DATA=data python benchmarks --only search    (minutes, most of them minilm's)
"""

from __future__ import annotations

from functools import partial
from random import Random
from tempfile import TemporaryDirectory

import qkvsearch as qkv
from benchmarks.support.public_data import ted
from benchmarks.support.quality import ask, mean_over
from benchmarks.support.results import Row
from benchmarks.support.script import main
from benchmarks.support.typos import with_typo
from qkvsearch.evaluation.metrics import reciprocal_rank
from qkvsearch.text.encoders import CHOICES
from qkvsearch.text.pretrained.fetch import find

K, SEED = 10, 0


def typed(choice: str) -> list[Row]:
    """MRR@10 of TED's dev queries as they are, and with one typo in one word each."""
    if choice != "corpus" and find(choice) is None:
        return []
    data, random = ted("dev"), Random(SEED)
    clean = list(data.queries.values())
    forms = {"as written": clean, "one typo each": [with_typo(text, random) for text in clean]}
    columns = qkv.Columns(text=data.text)
    judge = mean_over(reciprocal_rank, K, data.queries, data.judgements)
    task = f"TED talks, known item, {len(clean):,} dev queries, {choice}"
    with (
        TemporaryDirectory() as place,
        qkv.build(place, items=data.items, columns=columns, encoder=choice) as engine,
    ):
        found = {name: judge([ask(engine, None, K, texts)]) for name, texts in forms.items()}
    rows = [Row(task, name, f"MRR@{K}", value) for name, value in found.items()]
    share = found["one typo each"] / found["as written"]
    return [*rows, Row(task, "one typo each over as written", "share", share)]


PARTS = {choice: partial(typed, choice) for choice in CHOICES}

if __name__ == "__main__":
    main(__file__, PARTS)
