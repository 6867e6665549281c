"""The ten best of 100,000 texts by BM25, beside bm25s with its numba backend.

Texts and queries are drawn by the script, words by Zipf's law. Both are given terms, not text.
bm25s is asked in one batch, which suits it best, ours one query after another.

python benchmarks --only lexical_speed    (a minute; peer: pip install bm25s)
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from benchmarks.support.results import Row, installed
from benchmarks.support.script import main
from benchmarks.support.timing import System, compare
from qkvsearch.heads.bm25 import LexicalKeys
from qkvsearch.scores.topk import top_k
from qkvsearch.text.analysis import Token
from qkvsearch.text.vocabulary import Vocabulary

N, WORDS, QUERIES, K, TURNS = 100_000, 50_000, 500, 10, 7

Texts = list[list[str]]


def draw(rng: np.random.Generator, n: int, shortest: int, longest: int) -> Texts:
    """Words by rank, the r-th 1/r as often as the first."""
    shares = 1 / np.arange(1, WORDS + 1)
    lengths = rng.integers(shortest, longest + 1, size=n)
    words = rng.choice(WORDS, size=lengths.sum(), p=shares / shares.sum()).astype(str)
    return [part.tolist() for part in np.split(words, np.cumsum(lengths)[:-1])]


def drawn_texts() -> list[Row]:
    rng = np.random.default_rng(0)
    texts, queries = draw(rng, N, 5, 35), draw(rng, QUERIES, 2, 6)
    keys = index(texts)
    systems = [
        System("qkvsearch, lexical head, one after another", partial(ours, keys), tokens),
    ]
    if installed("bm25s"):
        systems.append(System("`bm25s`, numba backend, a batch", bm25s_answers(texts)))
    task = f"{N:,} texts, {QUERIES} queries, the {K} best; a query"
    return compare(task, systems, [queries], turns=TURNS, per=QUERIES)


def index(texts: Texts) -> LexicalKeys:
    vocabulary = Vocabulary.of({word for text in texts for word in text})
    terms = vocabulary.rows(word for text in texts for word in text)
    rows = np.repeat(np.arange(N), [len(text) for text in texts])
    ones = np.ones(len(terms), np.float32)
    return LexicalKeys.from_counts(vocabulary, csr_matrix((ones, (rows, terms))))


def tokens(queries: Texts) -> list[list[Token]]:
    return [[Token(word, word) for word in query] for query in queries]


def ours(keys: LexicalKeys, queries: list[list[Token]]) -> list[np.ndarray]:
    heads = (keys.head(query) for query in queries)
    return [top_k(head.scores, K, head.covered) for head in heads if head is not None]


def bm25s_answers(texts: Texts) -> Callable[[Any], Any]:
    import bm25s

    bm25 = bm25s.BM25(k1=1.2, b=0.75, backend="numba")
    bm25.index(texts, show_progress=False)
    return partial(bm25.retrieve, k=K, show_progress=False)


PARTS = {"drawn-texts": drawn_texts}

if __name__ == "__main__":
    main(__file__, PARTS, peers=["bm25s"])
