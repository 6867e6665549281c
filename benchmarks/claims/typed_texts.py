"""The same queries typed in other ways, fusion beside its best head, and wrong silence.

TED's dev queries (titles and tags are searched): the share of MRR@10 that capitals, accents, signs,
another order of the words and polite words around them leave. Regret: how far all heads together
are below the best single one. Wrong silence: the share of queries without hits among those whose
first hit, with `anyway`, is right. The share of neighbouring words in the lexical score was chosen
on TED's dev queries and lowered after a look at Cranfield's; the least weight of words beside long
texts was chosen with Cranfield's in view. So Cranfield's figures are optimistic.

QKVSEARCH_DATA=data python benchmarks --only typed_texts    (five minutes, most of them minilm's)
"""

from __future__ import annotations

import random
import unicodedata
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import qkvsearch as qkv
from benchmarks.support.public_data import JudgedTexts, cranfield, ted
from benchmarks.support.quality import ask, mean_over
from benchmarks.support.results import Row
from benchmarks.support.script import main
from qkvsearch.evaluation.metrics import ndcg, reciprocal_rank
from qkvsearch.tables.ids import id_text
from qkvsearch.text.encoders import CHOICES
from qkvsearch.text.pretrained.fetch import find

K = 10


def without_accents(text: str) -> str:
    decomposed = unicodedata.normalize("NFKD", text)
    return "".join(char for char in decomposed if not unicodedata.combining(char))


def in_another_order(text: str) -> str:
    words = text.split()
    random.Random(len(text)).shuffle(words)
    return " ".join(words)


WAYS: Mapping[str, Callable[[str], str]] = {
    "capitals": str.upper,
    "title case": str.title,
    "no accents": without_accents,
    "typographic quotes and dashes": lambda text: (
        text.translate(str.maketrans("'\"-", "’”–")).replace(" ", "  ") + " !!"
    ),
    "an emoji": lambda text: f"{text} 🙂",
    "another order of the words": in_another_order,
    "polite words before it": lambda text: f"please show me {text}",
}


def typed(encoder: str) -> list[Row]:
    if encoder != "corpus" and find(encoder) is None:
        return []
    rows = []
    measures = (("TED, dev queries", ted("dev"), reciprocal_rank, "MRR"),
                ("Cranfield", cranfield(), ndcg, "nDCG"))  # fmt: skip
    for name, data, measure, metric in measures:
        task, columns = f"{name}, {encoder}", qkv.Columns(id="id", title="title", text=data.text)
        judge = mean_over(measure, K, data.queries, data.judgements)
        texts = list(data.queries.values())
        with (
            TemporaryDirectory() as folder,
            qkv.build(
                Path(folder, "build"), items=data.items, columns=columns, encoder=encoder
            ) as engine,
        ):
            fused = judge([ask(engine, None, K, texts)])
            single = {
                head: judge([ask(engine, [head], K, texts)]) for head in engine.models.head_weights
            }
            best = max(single, key=single.__getitem__)
            rows.append(Row(f"{task}: all heads", "together", f"{metric}@{K}", fused))
            rows.append(Row(f"{task}: all heads", f"{best} alone", f"{metric}@{K}", single[best]))
            silenced = wrong_silence(engine, data)
            rows.append(Row(f"{task}: silence", "right first hits", "share silenced", silenced))
            for way, change in WAYS.items() if measure is reciprocal_rank else ():
                value = judge([ask(engine, None, K, map(change, texts))])
                rows.append(Row(f"{task}: typed otherwise", way, "share of MRR", value / fused))
    return rows


def wrong_silence(engine: qkv.Engine, data: JudgedTexts) -> float:
    n_right = n_silenced = 0
    for query, text in data.queries.items():
        best = engine.search(text, k=1, anyway=True)
        if len(best) and data.judgements[query].get(id_text(best[0].id), 0) > 0:
            n_right += 1
            n_silenced += not len(engine.search(text, k=1))
    return n_silenced / n_right


PARTS = {choice: partial(typed, choice) for choice in CHOICES}

if __name__ == "__main__":
    main(__file__, PARTS)
