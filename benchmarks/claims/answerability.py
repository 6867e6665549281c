"""Whether a search can tell what its catalog answers: TED's dev queries against what it cannot.

The catalog is TED's titles and tags; what it cannot answer are Cranfield's queries, the dev queries
with the letters of each word shuffled, and sentences in other languages. AUC is how often a query
that is answered gets the larger value of the two. The level is each build's own, which has seen
neither these queries nor these sentences; by it some of TED's are silenced, and some others not.

QKVSEARCH_DATA=data python benchmarks --only answerability    (five minutes)
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory

import numpy as np

import qkvsearch as qkv
from benchmarks.support.other_languages import SENTENCES
from benchmarks.support.public_data import cranfield, ted
from benchmarks.support.results import Row
from benchmarks.support.script import main
from qkvsearch.rank.answerable import Answerable, answerable
from qkvsearch.rank.named_things import named_things, terms_by_word
from qkvsearch.text.encoders import CHOICES
from qkvsearch.text.pretrained.fetch import find

SEED = 17


def telling_apart(encoder: str) -> list[Row]:
    if encoder != "corpus" and find(encoder) is None:
        return []
    talks, rng = ted("dev"), np.random.default_rng(SEED)
    asked = list(talks.queries.values())
    unanswerable = {
        "Cranfield's queries": list(cranfield().queries.values()),
        "shuffled letters": [_shuffled(text, rng) for text in asked],
        "other languages": list(SENTENCES),
    }
    apart = f"TED talks with {encoder}, {len(asked):,} dev queries told from others"
    silence = f"TED talks with {encoder}, which queries are answered"
    columns = qkv.Columns(id="id", title="title", text=talks.text)
    with (
        TemporaryDirectory() as folder,
        qkv.build(
            Path(folder, "ted"), items=talks.items, columns=columns, encoder=encoder
        ) as engine,
    ):
        answered = judged(engine, asked)
        told, silenced = [], [Row(silence, "TED's own", "share silenced", 1 - _share(answered))]
        for name, texts in unanswerable.items():
            found = judged(engine, texts)
            value = auc([one.value for one in answered], [one.value for one in found])
            told.append(Row(apart, f"{name}, {len(texts):,}", "AUC", value))
            silenced.append(Row(silence, name, "share silenced", 1 - _share(found)))
    return told + silenced


def judged(engine: qkv.Engine, texts: Sequence[str]) -> list[Answerable]:
    """What the build says of each query, by all its heads."""
    models, found = engine.models, []
    for text in texts:
        query = engine.texts.reader.read(text)
        asked = query.lookup
        heads = {name: engine.head(name, text) for name in models.head_weights}
        has_code = bool(asked.codes.tokens)
        tokens = models.analyzer.tokens(query.understood.text)
        things = named_things(models, tokens, terms_by_word(asked.tokens, asked.terms))
        found.append(answerable(models, asked.words, heads, has_code, asked.tokens, things))
    return found


def auc(positive: Sequence[float], negative: Sequence[float]) -> float:
    """How often a value of `positive` is above one of `negative`, ties half (Mann and Whitney
    1947)."""
    high, low = np.array(positive)[:, None], np.array(negative)
    return float(((high > low) + (high == low) / 2).mean())


def _share(found: Sequence[Answerable]) -> float:
    return fmean(one.answers for one in found)


def _shuffled(text: str, rng: np.random.Generator) -> str:
    return " ".join("".join(rng.permutation(list(word))) for word in text.split())


PARTS = {choice: partial(telling_apart, choice) for choice in CHOICES}

if __name__ == "__main__":
    main(__file__, PARTS)
