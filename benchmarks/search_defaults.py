"""How the heads' weights in search and the size of LSA were chosen: MRR@10 on dev queries.

QKVSEARCH_DATA=data python benchmarks/search_defaults.py

Reads the dev queries of the TED talks alone; the test queries are for known_item_search.py.
"""

from __future__ import annotations

from functools import partial
from statistics import fmean

from common import data_folder

from qkvsearch.data.columns import Columns
from qkvsearch.data.judgements import read_judgements, read_queries
from qkvsearch.data.sources import read_source
from qkvsearch.embeddings import Analyzer, CorpusEncoder
from qkvsearch.embeddings.vocabulary import count_terms
from qkvsearch.evaluation.metrics import reciprocal_rank
from qkvsearch.retrieval import DenseKeys, Head, LexicalKeys, fuse, top_k

SIZES = (64, 128, 200)
LEXICAL_WEIGHTS = (0.5, 0.6, 0.7, 0.75, 0.8, 0.9, 1.0)
K = 10


def main() -> None:
    folder = data_folder() / "ted"
    catalog = read_source(folder / "talks.csv", columns=Columns(text=("title", "tags"))).catalog
    queries = read_queries(folder / "queries_dev.tsv")
    judgements = read_judgements(folder / "qrels_dev.tsv")
    answers = [
        dict.fromkeys(catalog.ids.positions(judgements[name]).tolist(), 1) for name in queries
    ]

    texts, analyzer = catalog.texts(), Analyzer()
    keys = LexicalKeys.from_counts(*count_terms(texts, analyzer.key_terms))
    lexical = [keys.head(analyzer.query_tokens(text)) for text in queries.values()]
    print(f"MRR@{K} on {len(queries)} dev queries; columns: weight of the lexical head")
    print("LSA size " + "".join(f"{weight:8.2f}" for weight in LEXICAL_WEIGHTS))
    for size in SIZES:
        fitted = CorpusEncoder(size).fit(texts)
        dense = DenseKeys(fitted.embeddings_)
        semantic = [dense.head("semantic", fitted.encoder_.encode(q)) for q in queries.values()]
        row = [mrr(lexical, semantic, answers, weight) for weight in LEXICAL_WEIGHTS]
        print(f"{size:8} " + "".join(f"{value:8.4f}" for value in row))


def mrr(
    lexical: list[Head | None],
    semantic: list[Head | None],
    answers: list[dict[int, int]],
    weight: float,
) -> float:
    heads = zip(lexical, semantic, strict=True)
    ranked = [ranking(pair, (weight, 1 - weight)) for pair in heads]
    return fmean(map(partial(reciprocal_rank, k=K), ranked, answers))


def ranking(heads: tuple[Head | None, ...], weights: tuple[float, ...]) -> list[int]:
    """The best items by the heads that know a word of the query."""
    weighted = zip(heads, weights, strict=True)
    present = [(head, share) for head, share in weighted if head is not None and share]
    if not present:
        return []
    fused = fuse([head for head, _ in present], [share for _, share in present])
    return top_k(fused.scores, K, fused.answers).tolist()


if __name__ == "__main__":
    main()
