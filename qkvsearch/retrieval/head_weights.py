"""Learn the weights of heads on a catalog from queries and the items that answer them.

The weights are those of a conditional logit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from qkvsearch.attention import softmax
from qkvsearch.retrieval.bm25 import LexicalKeys
from qkvsearch.retrieval.fusion import mean_and_deviation
from qkvsearch.retrieval.training_queries import (
    AnsweredQueries,
    Columns,
    JudgedQueries,
    MadeQueries,
    lexical_scores,
    made_lexical_keys,
    made_queries,
)
from qkvsearch.text.analysis import Analyzer
from qkvsearch.text.analyzed import AnalyzedTexts
from qkvsearch.text.encoders import LEARNED, TextEncoder, learned_encoder
from qkvsearch.text.text_encoder import Weights, item_keys

# The items that a query chooses among. In a larger catalog half of them are the best, the others a
# sample.
N_ALTERNATIVES = 1000
# The prior weights count like this many queries: 100 judged queries move them halfway.
PRIOR_QUERIES = 100
# The least weight of words where texts are long. Chosen on collections of long texts, Cranfield's
# judged queries among them; `regret_of_fusion.py` among the benchmarks measures it.
MIN_LEXICAL = 0.25
# The scores in memory at a time, of all heads and items and a batch of queries: 256 MiB.
MAX_SCORES = 1 << 26
# A text of four times the words counts about twice as much: by `column_weights.py` among the
# benchmarks. Shorter texts than a sentence count like one, and longer texts than a transformer
# reads count no more.
POWER, MIN_LENGTH, MAX_LENGTH = 0.5, 16, 256
# What a column with the same text in every row counts, as a share of others.
CONSTANT = 0.01
# Texts to scores (queries, items).
Scorer = Callable[[Sequence[str]], np.ndarray]


# --- a conditional logit: an item's probability is the softmax of its fused score ---


class Alternatives(NamedTuple):
    """The items that queries choose among.

    scores: (heads, queries, items), standardized. answers: (queries, items), each row adds up
    to 1 over the items that answer the query. offsets: (queries, items), the logarithm of how many
    items of the catalog each item represents; 0 where there are all items.
    """

    scores: np.ndarray
    answers: np.ndarray
    offsets: np.ndarray | float = 0.0

    @classmethod
    def one_answer_each(cls, scores: np.ndarray) -> Alternatives:
        """Build from queries of which query i is answered by item i."""
        return cls(scores, np.eye(scores.shape[1], dtype=np.float32))


def standardized(scores: np.ndarray) -> np.ndarray:
    """Standardize each query's scores as fusion does: to zeros where they differ by rounding errors
    alone.

    >>> standardized(np.array([[1.0, 3.0]]))
    array([[-1.,  1.]])
    """
    mean, deviation = mean_and_deviation(scores)
    factor = np.where(deviation > 0, 1 / np.where(deviation > 0, deviation, 1), 0)
    return (scores - mean.astype(scores.dtype)) * factor.astype(scores.dtype)


def conditional_logit(sets: Sequence[Alternatives]) -> np.ndarray:
    """Return the weights (heads,) ≥ 0, adding up to 1, under which the answers are most likely.

    Maximize Σ ln softmax(Σₕ wₕ zₕ + offset), averaged over each query's answers, whose gradient is
    zₕ of the answers − its mean under the softmax. McFadden 1974, section 2; with a sample of the
    items: McFadden 1978, "Modelling the choice of residential location".

    >>> right, noise = 3 * np.eye(5), np.random.default_rng(0).normal(size=(5, 5))
    >>> conditional_logit([Alternatives.one_answer_each(np.stack([right, noise]))]).argmax()
    np.int64(0)
    """
    from scipy.optimize import minimize

    def loss(weights: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = 0.0, np.zeros_like(weights)
        for scores, answers, offsets in sets:
            fused = np.tensordot(weights.astype(scores.dtype), scores, 1)
            likely = softmax(fused + offsets)
            value -= float((answers * np.log(likely + 1e-30)).sum())
            gradient += np.einsum("qi,hqi->h", likely - answers, scores)
        n_queries = sum(len(alternatives.answers) for alternatives in sets)
        return value / n_queries, gradient / n_queries

    n_heads = len(sets[0].scores)
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


class LearnedWeights(NamedTuple):
    """The weight of each head, adding up to 1, and the queries they were learned from."""

    heads: dict[str, float]
    answered: list[AnsweredQueries]


def learn_weights(
    fields: Columns,
    encoders: Mapping[str, TextEncoder],
    prior: Mapping[str, float],
    epochs: Mapping[str, int | None] = MappingProxyType({}),
    progress: Callable[[int, int], None] | None = None,
    analyzer: Analyzer | None = None,
) -> LearnedWeights:
    """Return `mixed` weights of the prior and those learned from made queries; the prior where no
    queries can be made.

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
    scores: dict[str, list[np.ndarray]] = {}
    for done, head in enumerate(prior if made else ()):
        if head == "lexical":
            pairs = zip(lexical_keys, made, strict=True)
            scores[head] = [lexical_scores(keys, m.texts, analyzer) for keys, m in pairs]
        else:
            scores[head] = [
                made_scores(m, head, encoders[head], columns, epochs.get(head), analyzer)
                for m in made
            ]
        if progress is not None:
            progress(done + 1, len(prior))
    if not made:
        return LearnedWeights(dict(prior), [])
    sets = [
        Alternatives.one_answer_each(np.stack([standardized(scored) for scored in of_heads]))
        for of_heads in zip(*scores.values(), strict=True)
    ]
    weights = dict(zip(prior, conditional_logit(sets).tolist(), strict=True))
    answered = [
        AnsweredQueries(m.texts, keys, {name: of[i].max(axis=1) for name, of in scores.items()})
        for i, (m, keys) in enumerate(zip(made, lexical_keys, strict=True))
    ]
    return LearnedWeights(mixed(prior, weights), answered)


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
    encode = encoder.encode_many
    return np.asarray(encode(made.texts) @ item_keys(encode, made.keys, columns).T)


# --- weights from judged queries ---


def learn_from_judgements(
    judged: JudgedQueries,
    lexical: LexicalKeys,
    encoders: Mapping[str, TextEncoder],
    keys: Mapping[str, np.ndarray],
    prior: Mapping[str, float],
    analyzer: Analyzer | None = None,
) -> dict[str, float]:
    """Return the weights of heads under which the answers are most likely. The prior counts like
    100 queries: the weights are n / (100 + n) learned and 100 / (100 + n) prior.

    encoders, keys: of the dense heads; keys are (n_items, d). prior: a weight for each head,
    "lexical" included, which add up to 1.
    """

    def scorer(head: str) -> Scorer:
        if head == "lexical":
            return lambda texts: lexical_scores(lexical, texts, analyzer or Analyzer())
        return lambda texts: encoders[head].encode_many(texts) @ keys[head].T

    weights = np.array(list(prior.values()))
    rng = np.random.default_rng(0)
    chosen = judged.chosen(rng)
    scored = _scored(judged.texts, chosen, [scorer(head) for head in prior], lexical.n_items)
    sets = [_alternatives(scores, judged.answers[i], weights, rng) for i, scores in scored]
    all_scores, answers, offsets = zip(*sets, strict=True)
    joined = np.concatenate(all_scores, axis=1), np.concatenate(answers), np.concatenate(offsets)
    learned = conditional_logit([Alternatives(*joined)])
    share = len(chosen) / (len(chosen) + PRIOR_QUERIES)
    mixed = share * learned + (1 - share) * weights
    return {name: float(weight) for name, weight in zip(prior, mixed, strict=True)}


def _scored(
    texts: Sequence[str], chosen: np.ndarray, scorers: Sequence[Scorer], n_items: int
) -> Iterator[tuple[int, np.ndarray]]:
    """Yield the row and the standardized scores (heads, n_items) of each chosen query."""
    batch_size = max(1, MAX_SCORES // (len(scorers) * n_items))
    for start in range(0, len(chosen), batch_size):
        rows = chosen[start : start + batch_size]
        batch = [texts[i] for i in rows]
        scores = np.stack([standardized(score(batch)) for score in scorers])
        yield from zip(rows.tolist(), scores.swapaxes(0, 1), strict=True)


def _alternatives(
    scores: np.ndarray, answers: np.ndarray, weights: np.ndarray, rng: np.random.Generator
) -> Alternatives:
    """Return the items that one query chooses among: the whole catalog, or 1,000 items, which are
    up to 250 answers, the best by the given weights, and a sample of the others.
    """
    n_items = scores.shape[1]
    answers = answers[: N_ALTERNATIVES // 4]
    if n_items <= N_ALTERNATIVES:
        items, offsets = np.arange(n_items), np.zeros(n_items, np.float32)
    else:
        fused = weights.astype(np.float32) @ scores
        fused[answers] = np.inf
        best = np.argpartition(-fused, N_ALTERNATIVES // 2)[: N_ALTERNATIVES // 2]
        others = np.setdiff1d(np.arange(n_items), best, assume_unique=True)
        sample = rng.choice(others, N_ALTERNATIVES - len(best), replace=False, shuffle=False)
        items = np.concatenate([best, sample])
        offsets = np.zeros(len(items), np.float32)
        offsets[len(best) :] = np.log(len(others) / len(sample))
    shares = np.isin(items, answers).astype(np.float32) / len(answers)
    return Alternatives(scores[:, None, items], shares[None], offsets[None])
