"""How much each head should count on this catalog, learned from queries and what answers them.

Queries are made of the catalog's own texts: a column of some items is taken away and its words are
asked for; what is left of those items should be found. Queries that someone judged say more, where
there are any. Weights are learned from either by a conditional logit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from qkvsearch.attention import softmax
from qkvsearch.data.ids import Ids
from qkvsearch.data.judgements import Judgements, Queries, check_queries
from qkvsearch.errors import DataError
from qkvsearch.retrieval.fusion import mean_and_deviation
from qkvsearch.retrieval.keys import LexicalKeys
from qkvsearch.texts.analysis import Analyzer, known_tokens
from qkvsearch.texts.encoders import LEARNED, TextEncoder, learned_encoder
from qkvsearch.texts.text_encoder import item_keys
from qkvsearch.texts.vocabulary import count_terms

# A fifth of the items, at most 500, are asked for, each by a passage of at most 25 words; of a
# column with fewer than 3 words an item is not.
MOST_QUERIES, LONGEST_QUERY, SHORTEST_FIELD = 500, 25, 3
# Fewer say too little to be worth the time; so a catalog of under 500 items keeps the prior.
FEWEST_QUERIES = 100
# Where a field's words mostly stand in the other fields, too, asking for them tests memory alone.
MOST_OVERLAP = 0.6

# More say little more; a sample of them is asked.
MOST_JUDGED = 1000
# Items that a query chooses among: of a larger catalog half are the best, the rest a sample.
CANDIDATES = 1000
# The given weights count like this many queries: with 100 judged ones it is halfway.
PRIOR_QUERIES = 100
# Scores held at a time, of all heads and items and some queries: 256 MiB.
MOST_SCORES = 1 << 26
SHOWN_NAMES = 3

Columns = Sequence[Sequence[str]]
# Texts to scores (queries, items).
Scorer = Callable[[Sequence[str]], np.ndarray]


# --- a conditional logit: an item's probability is the softmax of its fused score ---


class Alternatives(NamedTuple):
    """What queries choose among.

    scores: (heads, queries, items), standardized. answers: (queries, items), each row adds up
    to 1 over the items that answer the query. offsets: (queries, items), the logarithm of how many
    items of the catalog each stands for, or 0 where all of them are here.
    """

    scores: np.ndarray
    answers: np.ndarray
    offsets: np.ndarray | float = 0.0

    @classmethod
    def each_its_own(cls, scores: np.ndarray) -> Alternatives:
        """Item i is the answer to query i."""
        return cls(scores, np.eye(scores.shape[1], dtype=np.float32))


def standardized(scores: np.ndarray) -> np.ndarray:
    """Each query's scores in standard deviations from their mean, as fusion has them: zeros where
    they differ by rounding errors alone.

    >>> standardized(np.array([[1.0, 3.0]]))
    array([[-1.,  1.]])
    """
    mean, deviation = mean_and_deviation(scores)
    factor = np.where(deviation > 0, 1 / np.where(deviation > 0, deviation, 1), 0)
    return (scores - mean.astype(scores.dtype)) * factor.astype(scores.dtype)


def conditional_logit(sets: Sequence[Alternatives]) -> np.ndarray:
    """Weights (heads,) ≥ 0, adding up to 1, under which the answers are most likely.

    Maximises Σ ln softmax(Σₕ wₕ zₕ + offset), averaged over each query's answers, whose gradient is
    zₕ of the answers − its mean under the softmax. McFadden 1974, section 2; with a sample of the
    items: McFadden 1978, "Modelling the choice of residential location".

    >>> right, noise = 3 * np.eye(5), np.random.default_rng(0).normal(size=(5, 5))
    >>> conditional_logit([Alternatives.each_its_own(np.stack([right, noise]))]).argmax()
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


# --- made queries ---


def learn_head_weights(
    fields: Columns,
    encoders: Mapping[str, TextEncoder],
    prior: Mapping[str, float],
    epochs: Mapping[str, int | None] = MappingProxyType({}),
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
    analyzer: Analyzer | None = None,
) -> dict[str, float]:
    """Halfway between the prior weights and those learned from made queries; the prior alone where
    no column can be asked for.

    fields: the text columns, each with one text an item. encoders: the dense heads' encoders.
    prior: a weight for every head, "lexical" included, which add up to 1. epochs: for how many the
    encoders learned from the catalog were trained, where that is known; those learned anew are
    trained for as many. progress: called with the columns done and the columns in all. analyzer:
    of the catalog's language.
    """
    rng = np.random.default_rng(seed)
    heads = list(prior)
    sets = []
    for column in range(len(fields)):
        scores = made_scores(fields, column, encoders, heads, rng, epochs, analyzer)
        if scores is not None:
            sets.append(scores)
        if progress is not None:
            progress(column + 1, len(fields))
    if not sets:
        return dict(prior)
    learned = conditional_logit([Alternatives.each_its_own(scores) for scores in sets])
    return {name: (prior[name] + float(w)) / 2 for name, w in zip(prior, learned, strict=True)}


def made_scores(
    fields: Columns,
    column: int,
    encoders: Mapping[str, TextEncoder],
    heads: Sequence[str],
    rng: np.random.Generator,
    epochs: Mapping[str, int | None] = MappingProxyType({}),
    analyzer: Analyzer | None = None,
) -> np.ndarray | None:
    """Every head's scores of sampled items, for a passage of each one's `column`, by what its other
    columns say; None where the column cannot be asked for.

    Encoders learned from the catalog are learned anew without the sampled items: a word that one
    item alone has would give it away. Static keeps its weights, which have counted the sampled
    texts, too: they say how rare a token is, not where it stands.
    """
    analyzer = analyzer or Analyzer()
    others = [texts for j, texts in enumerate(fields) if j != column]
    in_any_order = (
        i
        for i in rng.permutation(len(fields[column]))
        if any(texts[i].strip() for texts in others)
        and len(analyzer.tokens(fields[column][i])) >= SHORTEST_FIELD
    )
    asked = list(islice(in_any_order, min(MOST_QUERIES, len(fields[column]) // 5)))
    if len(asked) < FEWEST_QUERIES:
        return None
    sample = np.sort(asked)
    queries = [passage(fields[column][i], rng, analyzer) for i in sample]
    keys = [[texts[i] for i in sample] for texts in others]
    if overlap(queries, keys, analyzer) >= MOST_OVERLAP:
        return None
    outside = np.setdiff1d(np.arange(len(fields[column])), sample)
    rest = [[texts[i] for i in outside] for texts in fields]

    def scores(head: str) -> np.ndarray:
        if head == "lexical":
            texts = ["\n".join(columns) for columns in zip(*keys, strict=True)]
            lexical = LexicalKeys.from_counts(*count_terms(texts, analyzer.key_terms))
            return lexical_scores(lexical, queries, analyzer)
        encoder = encoders[head]
        if head in LEARNED:
            encoder, _ = learned_encoder(head, rest, epochs.get(head), analyzer.language)
        return encoder.encode_many(queries) @ item_keys(encoder.encode_many, keys).T

    return np.stack([standardized(scores(head)) for head in heads])


def passage(text: str, rng: np.random.Generator, analyzer: Analyzer | None = None) -> str:
    """At most 25 words in a row, from anywhere in the text, as they are written there."""
    words = (analyzer or Analyzer()).token_spans(text)
    if len(words) <= LONGEST_QUERY:
        return text
    first = rng.integers(len(words) - LONGEST_QUERY + 1)
    return text[words[first][0] : words[first + LONGEST_QUERY - 1][1]]


def overlap(queries: Sequence[str], keys: Columns, analyzer: Analyzer | None = None) -> float:
    """The mean share of a query's terms that its own item's key has."""
    analyzer, shares = analyzer or Analyzer(), []
    for query, *texts in zip(queries, *keys, strict=True):
        terms = analyzer.terms(query)
        there = set(analyzer.key_terms(" ".join(texts)))
        shares.append(sum(term in there for term in terms) / max(len(terms), 1))
    return float(np.mean(shares))


# --- judged queries ---


class JudgedQueries(NamedTuple):
    """Queries with answers in a catalog: their texts, of each the row numbers of the items that
    answer it, the best first; and the judged items that are not in the catalog.
    """

    texts: list[str]
    answers: list[np.ndarray]
    unknown: list[str]

    def summary(self) -> str:
        """What the weights were learned from, and what was of no use.

        >>> JudgedQueries(["deep sea"], [np.array([3])], ["v9"]).summary()
        '1 judged query; 1 judged item is not in the catalog: v9'
        """
        n, gone = len(self.texts), len(self.unknown)
        found = f"{n:,} judged {'query' if n == 1 else 'queries'}"
        if not gone:
            return found
        shown = ", ".join(self.unknown[:SHOWN_NAMES]) + (", …" if gone > SHOWN_NAMES else "")
        items = "item is" if gone == 1 else "items are"
        return f"{found}; {gone:,} judged {items} not in the catalog: {shown}"


def judged_queries(queries: Queries, judgements: Judgements, ids: Ids) -> JudgedQueries:
    """The queries that some item of the catalog answers, with a grade from 1 up.

    Raises `DataError` where a judgement names a query that is not there, or none is left.
    """
    check_queries(judgements, queries)
    rows = {text: row for row, text in enumerate(ids.texts)}
    texts, answers = [], []
    for query, grades in judgements.items():
        best_first = sorted(grades, key=lambda item: -grades[item])
        found = [rows[item] for item in best_first if grades[item] > 0 and item in rows]
        if found:
            texts.append(queries[query])
            answers.append(np.array(found, dtype=np.int64))
    unknown = sorted({item for grades in judgements.values() for item in grades} - rows.keys())
    if not texts:
        raise DataError(
            "no judgement names a relevant item of the catalog: nothing to learn weights from"
            + (f" (unknown: {', '.join(unknown[:SHOWN_NAMES])})" if unknown else "")
        )
    return JudgedQueries(texts, answers, unknown)


def learn_from_judgements(
    judged: JudgedQueries,
    lexical: LexicalKeys,
    encoders: Mapping[str, TextEncoder],
    keys: Mapping[str, np.ndarray],
    prior: Mapping[str, float],
    seed: int = 0,
    analyzer: Analyzer | None = None,
) -> dict[str, float]:
    """The weights under which the answers are most likely, with the given ones counting like 100
    queries: n / (100 + n) learned and 100 / (100 + n) given.

    encoders: the dense heads'. keys: what each has of the items, (n_items, d). prior: a weight for
    every head, "lexical" included, which add up to 1.
    """

    def scorer(head: str) -> Scorer:
        if head == "lexical":
            return lambda texts: lexical_scores(lexical, texts, analyzer or Analyzer())
        return lambda texts: encoders[head].encode_many(texts) @ keys[head].T

    weights = np.array(list(prior.values()))
    rng = np.random.default_rng(seed)
    chosen = np.arange(len(judged.texts))
    if len(chosen) > MOST_JUDGED:
        chosen = np.sort(rng.choice(chosen, MOST_JUDGED, replace=False))
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
    """Each chosen query's standardized scores (heads, n_items), computed some queries at a time."""
    step = max(1, MOST_SCORES // (len(scorers) * n_items))
    for start in range(0, len(chosen), step):
        block = chosen[start : start + step]
        asked = [texts[i] for i in block]
        scores = np.stack([standardized(score(asked)) for score in scorers])
        yield from zip(block.tolist(), scores.swapaxes(0, 1), strict=True)


def _alternatives(
    scores: np.ndarray, answers: np.ndarray, weights: np.ndarray, rng: np.random.Generator
) -> Alternatives:
    """One query's choice, among the whole catalog or among 1,000: up to 250 answers, the best by
    the given weights, and a sample of the rest, each of which stands for several."""
    n_items = scores.shape[1]
    answers = answers[: CANDIDATES // 4]
    if n_items <= CANDIDATES:
        found, offsets = np.arange(n_items), np.zeros(n_items, np.float32)
    else:
        fused = weights.astype(np.float32) @ scores
        fused[answers] = np.inf
        taken = np.argpartition(-fused, CANDIDATES // 2)[: CANDIDATES // 2]
        others = np.setdiff1d(np.arange(n_items), taken, assume_unique=True)
        sample = rng.choice(others, CANDIDATES - len(taken), replace=False, shuffle=False)
        found = np.concatenate([taken, sample])
        offsets = np.zeros(len(found), np.float32)
        offsets[len(taken) :] = np.log(len(others) / len(sample))
    shares = np.isin(found, answers).astype(np.float32) / len(answers)
    return Alternatives(scores[:, None, found], shares[None], offsets[None])


def lexical_scores(keys: LexicalKeys, texts: Sequence[str], analyzer: Analyzer) -> np.ndarray:
    """BM25 (queries, n_items), zeros for a query of unknown words."""
    scores = np.zeros((len(texts), keys.n_items), dtype=np.float32)
    for row, text in zip(scores, texts, strict=True):
        if (head := keys.head(known_tokens(analyzer.query_tokens(text), keys.has))) is not None:
            row[:] = head.scores
    return scores
