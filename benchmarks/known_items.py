"""Text search on known-item queries: how the default head weights and the size of LSA were chosen.

Prints MRR@10 on the *dev* queries of the TED talks for each size and weight; bm25s beside it, where
it is installed. Run with QKVSEARCH_DATA set: python benchmarks/known_items.py
"""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from qkvsearch.data.columns import Columns
from qkvsearch.data.sources import read_source
from qkvsearch.embeddings import Analyzer, CorpusEncoder
from qkvsearch.embeddings.vocabulary import count_terms
from qkvsearch.retrieval import DenseKeys, Head, LexicalKeys, fuse, top_k

SIZES = (64, 128, 200)
LEXICAL_WEIGHTS = (0.5, 0.6, 0.7, 0.75, 0.8, 0.9, 1.0)


def main() -> None:
    folder = Path(os.environ["QKVSEARCH_DATA"]) / "ted"
    catalog = read_source(folder / "talks.csv", columns=Columns(text=("title", "tags"))).catalog
    queries = read_pairs(folder / "queries_dev.tsv", 0, 1)
    relevant = read_pairs(folder / "qrels_dev.tsv", 0, 2)
    answers = [int(catalog.ids.positions([relevant[name]])[0]) for name in queries]

    texts, analyzer = catalog.texts(), Analyzer()
    keys = LexicalKeys.from_counts(*count_terms(texts, analyzer.key_terms))
    lexical = [keys.head(analyzer.query_tokens(text)) for text in queries.values()]
    print(f"MRR@10 on {len(queries)} dev queries; columns: weight of the lexical head")
    print("LSA size " + "".join(f"{weight:8.2f}" for weight in LEXICAL_WEIGHTS))
    for size in SIZES:
        fitted = CorpusEncoder(size).fit(texts)
        dense = DenseKeys(fitted.embeddings_)
        semantic = [dense.head("semantic", fitted.encoder_.encode(q)) for q in queries.values()]
        row = [mrr(lexical, semantic, answers, weight) for weight in LEXICAL_WEIGHTS]
        print(f"{size:8} " + "".join(f"{value:8.4f}" for value in row))
    if find_spec("bm25s"):
        print(f"bm25s, default settings with a stemmer: {bm25s_mrr(texts, queries, answers):.4f}")


def read_pairs(path: Path, key: int, value: int) -> dict[str, str]:
    rows = [line.rstrip("\n").split("\t") for line in path.open(encoding="utf-8")]
    return {row[key]: row[value] for row in rows}


def mrr(
    lexical: list[Head | None], semantic: list[Head | None], answers: list[int], weight: float
) -> float:
    total = 0.0
    for heads, answer in zip(zip(lexical, semantic, strict=True), answers, strict=True):
        weighted = zip(heads, (weight, 1 - weight), strict=True)
        present = [(head, share) for head, share in weighted if head is not None and share]
        if present:
            fused = fuse([head for head, _ in present], [share for _, share in present])
            total += reciprocal_rank(top_k(fused.scores, 10, fused.answers), answer)
    return total / len(answers)


def reciprocal_rank(ranked: np.ndarray, answer: int) -> float:
    places = np.flatnonzero(ranked == answer)
    return 1 / (places[0] + 1) if len(places) else 0.0


def bm25s_mrr(texts: list[str], queries: dict[str, str], answers: list[int]) -> float:
    import bm25s
    import snowballstemmer

    stemmer = snowballstemmer.stemmer("english").stemWords
    index = bm25s.BM25()
    index.index(bm25s.tokenize(texts, stemmer=stemmer, show_progress=False), show_progress=False)
    tokens = bm25s.tokenize(list(queries.values()), stemmer=stemmer, show_progress=False)
    ranked, _ = index.retrieve(tokens, k=10, show_progress=False)
    return float(np.mean([reciprocal_rank(r, a) for r, a in zip(ranked, answers, strict=True)]))


if __name__ == "__main__":
    main()
