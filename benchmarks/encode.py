"""The transformer on our own attention beside sentence-transformers, and the static table beside
wordllama: the same vectors, one text, many short ones, long ones, starting up; a million titles.

QKVSEARCH_DATA=data python benchmarks/encode.py
(minutes; peers: pip install sentence-transformers wordllama; minilm where it is installed)
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from common import Row, System, compare, data_folder, installed, print_table
from search import read_smart

from qkvsearch.texts.encoders import transformer
from qkvsearch.texts.pretrained.fetch import find
from qkvsearch.texts.pretrained.static import StaticEncoder

TURNS = 5
PEER = "`sentence-transformers`"
MILLION = 1_000_000
OURS_STARTS = """
from qkvsearch.texts.encoders import transformer
transformer("minilm").encode("a query")
"""
PEER_STARTS = """
import sys; sys.path.insert(0, "benchmarks")
from encode import sentence_transformer
sentence_transformer().encode("a query")
"""


def titles() -> list[str]:
    return pd.read_csv(data_folder() / "ted" / "talks.csv")["title"].tolist()


def abstracts() -> list[str]:
    """Long texts: most reach the limit of 256 tokens."""
    return [text["W"] for text in read_smart(data_folder() / "cranfield" / "cran.all.1400")]


@cache
def sentence_transformer() -> Any:
    from sentence_transformers import SentenceTransformer, models

    parts = [models.Transformer(str(find("minilm")), max_seq_length=256)]
    parts += [models.Pooling(parts[0].get_word_embedding_dimension()), models.Normalize()]
    return SentenceTransformer(modules=parts, device="cpu")


def one_text() -> list[Row]:
    texts = titles()[:100]
    ours, peer = transformer("minilm"), sentence_transformer()
    systems = [
        System("qkvsearch", lambda texts: [ours.encode(text).total for text in texts]),
        System(PEER, lambda texts: [peer.encode(text, show_progress_bar=False) for text in texts]),
    ]
    return compare("minilm, one text", systems, [texts] * TURNS, per=len(texts), blas_threads=None)


def many(task: str, texts: list[str]) -> list[Row]:
    """Bulk encoding; quality is the largest difference between any two numbers."""
    ours, peer = transformer("minilm"), sentence_transformer()
    expected = peer.encode(texts, show_progress_bar=False)
    systems = [
        System("qkvsearch", ours.encode_many),
        System(PEER, lambda texts: peer.encode(texts, show_progress_bar=False)),
    ]

    def differ(turns: list[np.ndarray]) -> float:
        return float(np.abs(turns[-1] - expected).max())

    rows = compare(task, systems, [texts] * TURNS, blas_threads=None)
    print(f"{task}: the largest difference of a number is {differ([ours.encode_many(texts)]):.0e}")
    return rows


def starting() -> list[Row]:
    def run(code: str) -> Any:
        return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)

    systems = [
        System("qkvsearch", lambda _: run(OURS_STARTS)),
        System(PEER, lambda _: run(PEER_STARTS)),
    ]
    return compare("minilm, a process with one text", systems, [None] * 3)


def a_million() -> list[Row]:
    """Titles of two to four talks' words each, so that there are enough."""
    rng, known = np.random.default_rng(0), titles()
    halves = rng.integers(len(known), size=(MILLION, 2))
    texts = [f"{known[a]} {known[b]}" for a, b in halves]
    systems = [System("qkvsearch", StaticEncoder.from_package().encode_many)]
    return compare("static table, a million titles", systems, [texts], blas_threads=None)


def claims() -> Iterator[Any]:
    if find("minilm") is not None and installed("sentence-transformers"):
        yield one_text
        yield lambda: many("minilm, 512 titles", titles()[:512])
        yield lambda: many("minilm, 128 abstracts", abstracts()[:128])
        yield starting
    yield a_million


if __name__ == "__main__":
    print_table(claims())
