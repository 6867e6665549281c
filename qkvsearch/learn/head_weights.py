"""Weigh the heads of a search and the text columns of a catalog.

Each encoder has fixed weights of heads. They are adapted to a catalog where weights learned from
queries made of its texts, by a conditional logit, are better beyond chance.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

import numpy as np

from qkvsearch.attention import softmax
from qkvsearch.errors import quantity
from qkvsearch.heads.answerability import BestScore
from qkvsearch.imports import leaving_no_trace
from qkvsearch.learn.training_queries import (
    AnsweredQueries,
    MadeQueries,
    TextColumns,
    lexical_scores,
    made_lexical_keys,
    made_queries,
)
from qkvsearch.scores.fusion import mean_and_deviation
from qkvsearch.text.analysis import Analyzer
from qkvsearch.text.analyzed import AnalyzedTexts
from qkvsearch.text.encoders import LEARNED, TextEncoder, learned_encoder
from qkvsearch.text.text_encoder import Weights, item_keys

# An encoder learns too little from fewer items, or from fewer words in all their texts. Chosen on
# parts of TED with its dev queries; `small_catalogs.py` among the benchmarks measures them.
MIN_ITEMS, MIN_WORDS = 500, 10_000
# What they count together in such a catalog where words are the only other head.
TIE = 0.01
# The main heads whose weights are adapted. How much the static table and the catalog's own encoders
# know depends on the catalog. A transformer keeps its weights: adapted ones were no better on CISI.
ADAPTED = ("static", "contrastive")
# The fixed weights of heads count like so many queries when weights are learned.
FIXED_COUNT = 20
# The least probability that is told from 0, and the least and the largest logarithm of a weight.
TINY, MIN_LOGARITHM, MAX_LOGARITHM = 1e-30, -12.0, 5.0
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


def conditional_logit(sets: Sequence[np.ndarray], fixed: np.ndarray) -> np.ndarray:
    """Return the weights (heads,) ≥ 0 under which the answers are most likely. Their shares are
    shrunk towards `fixed`, which counts like `FIXED_COUNT` queries.

    sets: standardized scores z, (heads, n, n) each: query i chooses among n items, and item i
    answers it. fixed: shares > 0, which add up to 1.

    Maximize Σ ln softmax(Σₕ wₕ zₕ) of the answers − `FIXED_COUNT` · KL(fixed ‖ shares). The
    gradient of the first is zₕ of the answer − its mean under the softmax. McFadden 1974,
    section 2.

    >>> right, noise = 3 * np.eye(500), np.random.default_rng(0).normal(size=(500, 500))
    >>> conditional_logit([np.stack([right, noise])], np.array([0.5, 0.5])).argmax()
    np.int64(0)
    """
    with leaving_no_trace("scipy.optimize"):
        from scipy.optimize import minimize

    n_queries = sum(scores.shape[1] for scores in sets)

    def loss(logarithms: np.ndarray) -> tuple[float, np.ndarray]:
        weights = np.exp(logarithms)
        shares = weights / weights.sum()
        value = FIXED_COUNT * float(fixed @ np.log(fixed / shares))
        gradient = FIXED_COUNT * (shares - fixed)
        for scores in sets:
            likely = softmax(np.tensordot(weights.astype(scores.dtype), scores, 1))
            answers = np.eye(len(likely), dtype=np.float32)
            value -= float((answers * np.log(likely + TINY)).sum())
            gradient += weights * np.einsum("qi,hqi->h", likely - answers, scores)
        return value / n_queries, gradient / n_queries

    bounds = [(MIN_LOGARITHM, MAX_LOGARITHM)] * len(fixed)
    best = minimize(loss, np.log(fixed), jac=True, bounds=bounds, method="L-BFGS-B").x
    return np.asarray(np.exp(best))


def log_likelihoods(sets: Sequence[np.ndarray], weights: np.ndarray) -> np.ndarray:
    """Return the logarithm of the probability of each query's answer, (n_queries,)."""
    logarithms = []
    for scores in sets:
        likely = softmax(np.tensordot(weights.astype(scores.dtype), scores, 1))
        logarithms.append(np.log(np.diagonal(likely) + TINY))
    return np.concatenate(logarithms)


def is_better(sets: Sequence[np.ndarray], learned: np.ndarray, fixed: np.ndarray) -> bool:
    """Return whether answers are more likely by the learned weights than by the fixed ones, by more
    than chance: by two standard errors of the mean difference of the queries.

    The sum of weights sets how sure a softmax is. Fixed weights have the sum under which the
    answers are most likely, so that only shares are compared.
    """
    sums = np.geomspace(0.5, 16, 16)
    by_fixed = max((log_likelihoods(sets, total * fixed) for total in sums), key=np.mean)
    gains = log_likelihoods(sets, learned) - by_fixed
    return bool(gains.mean() > 2 * gains.std() / np.sqrt(len(gains)))


# --- weights of columns ---


def length_weights(fields: TextColumns, analyzer: Analyzer | None = None) -> np.ndarray:
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


# --- catalogs that are too small ---


def too_small(fields: Sequence[AnalyzedTexts]) -> str | None:
    """Return why a catalog teaches encoders too little; None where it is large enough.

    fields: the text columns.
    """
    n_items = len(fields[0]) if fields else 0
    n_words = sum(int(column.n_tokens.sum()) for column in fields)
    if n_items >= MIN_ITEMS and n_words >= MIN_WORDS:
        return None
    few = quantity(n_items, "item") if n_items < MIN_ITEMS else quantity(n_words, "word")
    teach = "teaches" if few.startswith("1 ") else "teach"
    return f"{few} {teach} them too little; it takes {MIN_ITEMS:,} items and {MIN_WORDS:,} words"


def without_learned(weights: Mapping[str, float]) -> dict[str, float]:
    """Return weights in which the heads learned from the catalog have none, and words have theirs.

    Where words are the only other head, learned heads share `TIE`: they order the items that words
    leave equal, the ones without any word of the query among them.

    >>> without_learned({"lexical": 0.25, "lsa": 0.25, "static": 0.5})
    {'lexical': 0.5, 'lsa': 0.0, 'static': 0.5}
    >>> without_learned({"lexical": 0.4, "lsa": 0.15, "contrastive": 0.45})
    {'lexical': 0.99, 'lsa': 0.0025, 'contrastive': 0.0075}
    """
    learned = {name: weight for name, weight in weights.items() if name in LEARNED}
    share = TIE / sum(learned.values()) if len(learned) + 1 == len(weights) else 0.0
    changed = dict(weights) | {name: share * weight for name, weight in learned.items()}
    changed["lexical"] = 1 - sum(weight for name, weight in changed.items() if name != "lexical")
    return changed


# --- weights from made queries ---


def learn_weights(
    fields: TextColumns,
    encoders: Mapping[str, TextEncoder],
    prior: Mapping[str, float],
    epochs: Mapping[str, int | None] = MappingProxyType({}),
    progress: Callable[[int, int], None] | None = None,
    analyzer: Analyzer | None = None,
) -> tuple[dict[str, float], list[AnsweredQueries]]:
    """Return the weights of heads, and the queries made of the catalog.

    The weights are the prior ones, unless the main head is one of `ADAPTED` and learned weights
    are better beyond chance on the made queries: then they are `mixed`. Encoders were not trained
    on the items of these queries.

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
    weighted = [head for head, weight in prior.items() if weight > 0]
    for i, (queries, keys) in enumerate(zip(made, lexical_keys, strict=True)):
        of_heads = {head: of_sets[i] for head, of_sets in scores.items()}
        sets.append(np.stack([standardized(of_heads[head]) for head in weighted]))
        best = {head: BestScore.of_rows(scored) for head, scored in of_heads.items()}
        answered.append(AnsweredQueries(queries.texts, keys, best))
    if weighted[-1] not in ADAPTED or len(weighted) < 3:
        return dict(prior), answered
    fixed = np.array([prior[head] for head in weighted])
    learned = conditional_logit(sets, fixed)
    if not is_better(sets, learned, fixed):
        return dict(prior), answered
    return mixed(prior, dict(zip(weighted, learned.tolist(), strict=True))), answered


def mixed(prior: Mapping[str, float], learned: Mapping[str, float]) -> dict[str, float]:
    """Return the weights of a catalog of long texts: words have their prior weight, and the dense
    heads share the rest as was learned.

    Made queries are passages of texts. They tell how well each encoder knows the vocabulary, but
    not how many of an item's words people use.

    >>> mixed({"lexical": 0.2, "a": 0.4, "b": 0.4}, {"lexical": 0.5, "a": 0.3, "b": 0.1})
    {'lexical': 0.2, 'a': 0.6, 'b': 0.2}
    """
    lexical = prior["lexical"]
    rest = (1 - lexical) / (sum(learned.values()) - learned["lexical"])
    return {name: lexical if name == "lexical" else rest * learned.get(name, 0.0) for name in prior}


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
