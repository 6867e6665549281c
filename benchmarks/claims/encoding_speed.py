"""The transformer on our own attention beside sentence-transformers: the same vectors, one text,
many short ones, long ones, starting up; and a million titles by the static table.

QKVSEARCH_DATA=data python benchmarks --only encoding_speed
(three minutes; peer: pip install sentence-transformers; minilm where it is installed)
"""

from __future__ import annotations

import subprocess
import sys
from functools import partial
from typing import Any

import numpy as np

from benchmarks.support.public_data import cranfield, ted
from benchmarks.support.results import Row
from benchmarks.support.script import main
from benchmarks.support.sentence_peer import NAME, is_here, sentence_transformer
from benchmarks.support.timing import System, compare, rescored
from qkvsearch.text.encoders import pretrained
from qkvsearch.text.pretrained.static import StaticEncoder

TURNS = 5
PEER = f"`{NAME}`"
MILLION = 1_000_000
OURS_STARTS = """
from qkvsearch.text.encoders import pretrained
pretrained("minilm").encode("a query")
"""
PEER_STARTS = """
from benchmarks.support.sentence_peer import sentence_transformer
sentence_transformer().encode("a query")
"""


def titles() -> list[str]:
    return ted("dev").items["title"].tolist()


def abstracts() -> list[str]:
    """Long texts: most reach the limit of 256 tokens."""
    return cranfield().items["body"].tolist()


def one_text() -> list[Row]:
    texts = titles()[:100]
    ours, peer = pretrained("minilm"), sentence_transformer()
    systems = [
        System("qkvsearch", lambda texts: [ours.encode(text).total for text in texts]),
        System(PEER, lambda texts: [peer.encode(text, show_progress_bar=False) for text in texts]),
    ]
    task = "minilm, one text"
    return compare(task, systems, [texts], turns=TURNS, per=len(texts), blas_threads=None)


def one_query() -> list[Row]:
    """Queries one at a time. Ours has the tokens for a search beside the embedding, and takes one
    core; the peer takes all of them by default.
    """
    import torch

    queries = list(ted("dev").queries.values())[:50]
    ours, peer = pretrained("minilm"), sentence_transformer()

    def encode(queries: list[str]) -> list[np.ndarray]:
        return [peer.encode(query, show_progress_bar=False) for query in queries]

    def in_one_thread(queries: list[str]) -> list[np.ndarray]:
        n_threads = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            return encode(queries)
        finally:
            torch.set_num_threads(n_threads)

    systems = [
        System("qkvsearch", lambda queries: [ours.read(query) for query in queries], rescored),
        System(PEER, encode, rescored),
        System(f"{PEER}, one thread", in_one_thread, rescored),
    ]
    task = "minilm, one query"
    return compare(task, systems, [queries], turns=TURNS, per=len(queries), blas_threads=None)


def many(task: str, texts: list[str]) -> list[Row]:
    """Bulk encoding; the quality is the largest difference of a number to the peer's."""
    peer = partial(sentence_transformer().encode, show_progress_bar=False)
    expected = peer(texts)
    systems = [
        System("qkvsearch", pretrained("minilm").encode_many),
        System(PEER, peer),
    ]

    def differ(made: list[np.ndarray]) -> float:
        return float(np.abs(made[-1] - expected).max())

    metric = "largest difference of a number"
    return compare(task, systems, [texts], metric, differ, turns=TURNS, blas_threads=None)


def starting() -> list[Row]:
    def run(code: str) -> Any:
        return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)

    systems = [
        System("qkvsearch", lambda _: run(OURS_STARTS)),
        System(PEER, lambda _: run(PEER_STARTS)),
    ]
    return compare("minilm, a process with one text", systems, [None], turns=3)


def a_million() -> list[Row]:
    """Titles of two talks' words each, so that there are enough."""
    rng, known = np.random.default_rng(0), titles()
    halves = rng.integers(len(known), size=(MILLION, 2))
    texts = [f"{known[a]} {known[b]}" for a, b in halves]
    systems = [System("qkvsearch", StaticEncoder.from_package().encode_many)]
    return compare("static table, a million titles", systems, [texts], blas_threads=None)


WITH_PEER = {
    "one-text": one_text,
    "one-query": one_query,
    "titles": lambda: many("minilm, 512 titles", titles()[:512]),
    "abstracts": lambda: many("minilm, 128 abstracts of up to 256 tokens", abstracts()[:128]),
    "starting": starting,
}
PARTS = {**(WITH_PEER if is_here() else {}), "static": a_million}

if __name__ == "__main__":
    main(__file__, PARTS, peers=[NAME])
