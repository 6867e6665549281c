"""Words of one family in the lexical head: how alike they must be, and what they add.

Known-item search for TED talks by title and tags, on the dev queries alone: MRR@10 of words alone
and beside LSA and contrastive by the given weights, by the fewest letters and the least share of
all their letters that two words must begin with alike. None is a search by stems alone.

QKVSEARCH_DATA=data python benchmarks --only related_words    (half a minute)
"""

from __future__ import annotations

from unittest.mock import patch

import numpy as np

from benchmarks.support.public_data import ted
from benchmarks.support.results import Row
from benchmarks.support.script import main
from qkvsearch.heads.bm25 import LexicalKeys
from qkvsearch.learn import training_queries
from qkvsearch.learn.head_weights import standardized
from qkvsearch.learn.training_queries import lexical_scores
from qkvsearch.text import related_words
from qkvsearch.text.analysis import Analyzer
from qkvsearch.text.analyzed import AnalyzedTexts
from qkvsearch.text.encoders import dense_heads, fitted_encoder, prior_weights
from qkvsearch.text.text_encoder import item_keys

K = 10
FEWEST, SHARES = (4, 5, 6), (0.6, 0.65, 0.7, 0.8)
NONE = 1.0  # no other word is as much alike


def families() -> list[Row]:
    data = ted("dev")
    fields = [data.items[name].tolist() for name in data.text]
    texts = ["\n".join(columns) for columns in zip(*fields, strict=True)]
    words = LexicalKeys.from_counts(*AnalyzedTexts.of(texts, Analyzer()).key_counts())
    queries, weights = list(data.queries.values()), prior_weights("corpus")
    places = {item: place for place, item in enumerate(data.items["id"])}
    answers = np.array([places[next(iter(data.judgements[query]))] for query in data.queries])
    beside = np.zeros((len(queries), len(texts)), np.float32)
    for head in dense_heads(weights):
        encode = fitted_encoder(head, fields).encode_many
        found = standardized(encode(queries) @ item_keys(encode, fields).T)
        beside += np.float32(weights[head]) * found
    rows = []
    for fewest, share in [(FEWEST[0], NONE), *((n, s) for n in FEWEST for s in SHARES)]:
        with (
            patch.object(related_words, "MIN_PREFIX", fewest),
            patch.object(training_queries, "MIN_PREFIX", fewest),
            patch.object(related_words, "MIN_SIMILARITY", share),
        ):
            scores = standardized(lexical_scores(words, queries, Analyzer()))
        system = "none" if share == NONE else f"{fewest} letters, share {share:g}"
        fused = beside + np.float32(weights["lexical"]) * scores
        for task, found in (("words alone", scores), ("corpus", fused)):
            rows.append(Row(f"TED dev queries, {task}", system, f"MRR@{K}", mrr(found, answers)))
    return sorted(rows, key=lambda row: row.task, reverse=True)


def mrr(scores: np.ndarray, answers: np.ndarray) -> float:
    """Of one answer to each query, (queries,); of equal scores the lower row is first."""
    own = scores[np.arange(len(scores)), answers][:, None]
    before = np.arange(scores.shape[1]) < answers[:, None]
    ranks = 1 + ((scores > own) | ((scores == own) & before)).sum(axis=1)
    return float(np.where(ranks <= K, 1 / ranks, 0).mean())


PARTS = {"families": families}

if __name__ == "__main__":
    main(__file__, PARTS)
