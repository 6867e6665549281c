"""The sentence that an evaluation begins with: what its figures mean, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from qkvsearch.evaluation.results import Evaluation, Metrics


def search_sentence(result: Evaluation, right: str = "the relevant items") -> str:
    """Return what the figures of a search mean. right: what should be found.

    >>> from qkvsearch.evaluation.results import Evaluation
    >>> ours, lexical = {"ndcg@10": 0.5, "recall@100": 0.8}, {"ndcg@10": 0.25, "recall@100": 0.5}
    >>> search_sentence(Evaluation("judged", ours, {"lexical": lexical}))
    'The first ten hits are 50% of the best possible order (nDCG@10), and the first hundred have 80% of the relevant items; by words alone 25% and 50%.'
    """  # noqa: E501
    from qkvsearch.heads.lexical_head import LEXICAL

    of_order, of_items = _shares(result.metrics)
    sentence = (
        f"The first ten hits are {of_order} of the best possible order (nDCG@10), and the first "
        f"hundred have {of_items} of {right}"
    )
    lexical = result.baselines.get(LEXICAL.name)
    return (
        f"{sentence}; by words alone {' and '.join(_shares(lexical))}."
        if lexical
        else f"{sentence}."
    )


def _shares(metrics: Metrics) -> tuple[str, str]:
    return f"{metrics['ndcg@10']:.0%}", f"{metrics['recall@100']:.0%}"


def recommend_sentence(result: Evaluation) -> str:
    """Return what the figures of recommendations mean.

    >>> from qkvsearch.evaluation.results import Evaluation
    >>> popular = {"popularity": {"hit_rate@10": 0.36}}
    >>> recommend_sentence(Evaluation("time", {"hit_rate@10": 0.85}, popular, {"k": 10}))
    '85% of the users find at least one of their held-out items among 10 recommendations; with the most popular items alone 36%.'
    """  # noqa: E501
    k = result.facts["k"]
    name = f"hit_rate@{k}"
    sentence = (
        f"{result.metrics[name]:.0%} of the users find at least one of their held-out items among "
        f"{k:,} recommendations"
    )
    popular = result.baselines.get("popularity")
    if popular is None:
        return f"{sentence}."
    return f"{sentence}; with the most popular items alone {popular[name]:.0%}."
