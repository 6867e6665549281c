"""Learn the weights of heads on a catalog from queries made of its texts.

The weights are those of a conditional logit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

import numpy as np

from qkvsearch.attention import softmax
from qkvsearch.heads.answerability import BestScore
from qkvsearch.imports import leaving_no_trace
from qkvsearch.learn.training_queries import (
    AnsweredQueries,
    Columns,
    MadeQueries,
    lexical_scores,
    made_lexical_keys,
    made_queries,
)
from qkvsearch.scores.fusion import mean_and_deviation
from qkvsearch.text.analysis import Analyzer
from qkvsearch.text.analyzed import AnalyzedTexts
from qkvsearch.text.encoders import LEARNED, TextEncoder, learned_encoder
from qkvsearch.text.text_encoder import Weights, item_keys

# The least weight of words where texts are long. Chosen on collections of long texts, Cranfield's
# judged queries among them; `regret_of_fusion.py` among the benchmarks measures it.
MIN_LEXICAL = 0.25
# A text of four times the words counts about twice as much: by `column_weights.py` among the
# benchmarks. Shorter texts than a sentence count like one, and longer texts than a transformer
# reads count no more.
POWER, MIN_LENGTH, MAX_LENGTH = 0.5, 16, 256
# What a column with the same text in every row counts, as a share of others.
CONSTANT = 0.01


# --- a conditional logit: an item's probability is the softmax of its fused score ---


def standardized(scores: np.ndarray) -> np.ndarray:
    """Standardize each query's scores as fusion does: to zeros where they differ by rounding errors
    alone.

    >>> standardized(np.array([[1.0, 3.0]]))
    array([[-1.,  1.]])
    """
    mean, deviation = mean_and_deviation(scores)
    factor = np.where(deviation > 0, 1 / np.where(deviation > 0, deviation, 1), 0)
    return (scores - mean.astype(scores.dtype)) * factor.astype(scores.dtype)


def conditional_logit(sets: Sequence[np.ndarray]) -> np.ndarray:
    """Return the weights (heads,) ≥ 0, adding up to 1, under which the answers are most likely.

    sets: standardized scores z, (heads, n, n) each: query i chooses among n items, and item i
    answers it. Maximize Σ ln softmax(Σₕ wₕ zₕ) of the answers, whose gradient is zₕ of the answer −
    its mean under the softmax. McFadden 1974, section 2.

    >>> right, noise = 3 * np.eye(5), np.random.default_rng(0).normal(size=(5, 5))
    >>> conditional_logit([np.stack([right, noise])]).argmax()
    np.int64(0)
    """
    with leaving_no_trace("scipy.optimize"):
        from scipy.optimize import minimize

    def loss(weights: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = 0.0, np.zeros_like(weights)
        for scores in sets:
            likely = softmax(np.tensordot(weights.astype(scores.dtype), scores, 1))
            answers = np.eye(len(likely), dtype=np.float32)
            value -= float((answers * np.log(likely + 1e-30)).sum())
            gradient += np.einsum("qi,hqi->h", likely - answers, scores)
        n_queries = sum(scores.shape[1] for scores in sets)
        return value / n_queries, gradient / n_queries

    n_heads = len(sets[0])
    bounds = [(0, None)] * n_heads
    best = minimize(loss, np.ones(n_heads), jac=True, bounds=bounds, method="L-BFGS-B").x
    return best / best.sum() if best.sum() > 0 else np.full(n_heads, 1 / n_heads)


# --- weights of columns ---


def length_weights(fields: Columns, analyzer: Analyzer | None = None) -> np.ndarray:
    """Return weights (n_columns,) that add up to 1, by the square root of the mean number of words
    in a column's texts, empty ones aside. Columns of short texts have equal weights. A column with
    the same text in every row tells no items apart and has hardly any. With equal weights a title
    would count as much as the whole description.

    fields: the text columns, each with one text for each item.

    >>> titles, bodies = ["sea", "fish"], ["the sea is deep " * 36, "fish swim in the sea " * 30]
    >>> length_weights([titles, bodies]).round(2), length_weights([titles, ["a", "a"]]).round(2)
    (array([0.25, 0.75]), array([0.99, 0.01]))
    """
    lengths, apart = np.zeros(len(fields)), np.ones(len(fields))
    for i, column in enumerate(AnalyzedTexts.of_columns(fields, analyzer or Analyzer())):
        has_text = np.array([bool(text.strip()) for text in column], bool)
        lengths[i] = column.n_tokens[has_text].mean() if has_text.any() else 0
        apart[i] = CONSTANT if len(set(column)) == 1 else 1
    shares = apart * np.clip(lengths, MIN_LENGTH, MAX_LENGTH) ** POWER
    return np.asarray(shares / shares.sum())


# --- weights from made queries ---


def learn_weights(
    fields: Columns,
    encoders: Mapping[str, TextEncoder],
    prior: Mapping[str, float],
    epochs: Mapping[str, int | None] = MappingProxyType({}),
    progress: Callable[[int, int], None] | None = None,
    analyzer: Analyzer | None = None,
) -> tuple[dict[str, float], list[AnsweredQueries]]:
    """Return `mixed` weights of the prior and those learned from made queries, and these queries.
    Where none can be made, return the prior.

    fields: the text columns, each with one text for each item. encoders: of the dense heads. prior:
    a weight for each head, "lexical" included, which add up to 1. epochs: of the encoders that
    were trained on the catalog; they are trained again for as long. progress: called with the
    number of heads done and of all heads.
    """
    analyzer = analyzer or Analyzer()
    fields = AnalyzedTexts.of_columns(fields, analyzer)
    columns = length_weights(fields, analyzer)
    made = list(made_queries(fields, np.random.default_rng(0), analyzer))
    lexical_keys = [made_lexical_keys(queries, analyzer) for queries in made]
    if not made:
        return dict(prior), []
    # Of each head, the scores of each set of made queries.
    scores: dict[str, list[np.ndarray]] = {}
    for done, head in enumerate(prior):
        if head == "lexical":
            scores[head] = [
                lexical_scores(keys, queries.texts, analyzer)
                for keys, queries in zip(lexical_keys, made, strict=True)
            ]
        else:
            scores[head] = [
                made_scores(queries, head, encoders[head], columns, epochs.get(head), analyzer)
                for queries in made
            ]
        if progress is not None:
            progress(done + 1, len(prior))
    sets, answered = [], []
    for i, (queries, keys) in enumerate(zip(made, lexical_keys, strict=True)):
        of_heads = {head: of_sets[i] for head, of_sets in scores.items()}
        sets.append(np.stack([standardized(scored) for scored in of_heads.values()]))
        best = {head: BestScore.of_rows(scored) for head, scored in of_heads.items()}
        answered.append(AnsweredQueries(queries.texts, keys, best))
    weights = dict(zip(prior, conditional_logit(sets).tolist(), strict=True))
    return mixed(prior, weights), answered


def mixed(prior: Mapping[str, float], learned: Mapping[str, float]) -> dict[str, float]:
    """Return the weights of a catalog of long texts: words have their prior weight, at least
    `MIN_LEXICAL`, and the dense heads share the rest as was learned.

    Made queries are passages of texts. They tell how well each encoder knows the vocabulary, but
    not how many of an item's words people use.

    >>> mixed({"lexical": 0.2, "a": 0.4, "b": 0.4}, {"lexical": 0.5, "a": 0.25, "b": 0.25})
    {'lexical': 0.25, 'a': 0.375, 'b': 0.375}
    """
    lexical = max(prior["lexical"], MIN_LEXICAL)
    total = sum(learned.values()) - learned["lexical"]
    dense = learned if total else prior
    rest = (1 - lexical) / (sum(dense.values()) - dense["lexical"])
    return {name: lexical if name == "lexical" else rest * dense[name] for name in prior}


def made_scores(
    made: MadeQueries,
    head: str,
    encoder: TextEncoder,
    columns: Weights,
    epochs: int | None = None,
    analyzer: Analyzer | None = None,
) -> np.ndarray:
    """Score the items of made queries by a dense head: (queries, items).

    Encoders learned from the catalog are learned again without these items: a word that only one
    item has would give it away. The static encoder keeps its weights, which were learned with them:
    they tell how rare a token is, not which item has it.
    """
    if head in LEARNED:
        language = (analyzer or Analyzer()).language
        encoder = learned_encoder(head, made.outside, language, epochs).encoder
    keys = item_keys(encoder.encode_many, made.keys, columns)
    return np.asarray(encoder.encode_queries(made.texts) @ keys.T)
