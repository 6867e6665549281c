"""How much each head should count on this catalog, learned from queries and what answers them.

Queries are made of the catalog's own texts; those that someone judged say more, where there are
any. Weights are learned from either by a conditional logit, those of the columns in each dense
head's keys first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from qkvsearch.attention import softmax
from qkvsearch.data.ids import Ids
from qkvsearch.data.judgements import Judgements, Queries, check_queries, fingerprints
from qkvsearch.errors import DataError, listed_names
from qkvsearch.retrieval.column_weights import (
    PRIOR_QUERIES,
    ColumnScores,
    length_weights,
    likeliest,
)
from qkvsearch.retrieval.fusion import mean_and_deviation
from qkvsearch.retrieval.keys import Expansion, LexicalKeys, QueryTerm
from qkvsearch.retrieval.made_queries import Columns, MadeQueries, made_queries
from qkvsearch.text.analysis import Analyzer, Token, resolve_code
from qkvsearch.text.analyzed import AnalyzedTexts
from qkvsearch.text.encoders import LEARNED, FittedEncoder, TextEncoder, learned_encoder
from qkvsearch.text.related_words import MAX_MEAN_LENGTH, MIN_PREFIX, related_terms

# More say little more; a sample of them is asked.
MOST_JUDGED = 1000
# Where a larger share of the items is left out, what was learned with them is no place to begin.
MOST_LEFT_OUT = 0.02
# Items that a query chooses among: of a larger catalog half are the best, the rest a sample.
CANDIDATES = 1000
# Items that queries choose among for the weights of columns, the same ones for all.
MOST_ITEMS = 4000
# Scores held at a time, of all heads and items and some queries: 256 MiB.
MOST_SCORES = 1 << 26
SHOWN_NAMES = 3

# Texts to scores (queries, items).
Scorer = Callable[[Sequence[str]], np.ndarray]


class AnsweredQueries(NamedTuple):
    """Queries that were asked: their texts, the lexical keys of the items that they chose among,
    and each head's best score of each, (n_texts,).
    """

    texts: Sequence[str]
    keys: LexicalKeys
    best: Mapping[str, np.ndarray]


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


class LearnedWeights(NamedTuple):
    """heads: how much each head counts, adding up to 1. columns: how much each text column counts
    in the keys of each dense head, (n_columns,), adding up to 1. answered: what they were learned
    from.
    """

    heads: dict[str, float]
    columns: dict[str, np.ndarray]
    answered: list[AnsweredQueries]


def learn_weights(
    fields: Columns,
    encoders: Mapping[str, TextEncoder],
    prior: Mapping[str, float],
    learned: Mapping[str, FittedEncoder] = MappingProxyType({}),
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
    analyzer: Analyzer | None = None,
) -> LearnedWeights:
    """Halfway between the given weights and those learned from made queries; the given ones alone
    where no column can be asked for.

    fields: the text columns, each with one text an item. encoders: the dense heads' encoders.
    prior: a weight for every head, "lexical" included, which add up to 1; those of the columns are
    given by `length_weights`. learned: those that were learned from the catalog, where that is
    known; they are learned anew like these. progress: called with the heads done and the heads in
    all. analyzer: of the catalog's language.
    """
    analyzer = analyzer or Analyzer()
    fields = AnalyzedTexts.of_columns(fields, analyzer)
    given = length_weights(fields, analyzer)
    columns = {head: given for head in prior if head != "lexical"}
    made = list(made_queries(fields, np.random.default_rng(seed), analyzer))
    keys = [made_lexical_keys(queries, analyzer) for queries in made]
    scores: dict[str, list[np.ndarray]] = {}
    for done, head in enumerate(prior if made else ()):
        if head == "lexical":
            pairs = zip(keys, made, strict=True)
            scores[head] = [lexical_scores(own, one.texts, analyzer) for own, one in pairs]
        else:
            found = [
                made_scores(one, head, encoders[head], learned.get(head), analyzer) for one in made
            ]
            columns[head] = (given + likeliest(found, given)) / 2
            scores[head] = [one.scores(columns[head]) for one in found]
        if progress is not None:
            progress(done + 1, len(prior))
    if not made:
        return LearnedWeights(dict(prior), columns, [])
    sets = [
        Alternatives.each_its_own(np.stack([standardized(scored) for scored in of_heads]))
        for of_heads in zip(*scores.values(), strict=True)
    ]
    weights = conditional_logit(sets)
    heads = {name: (prior[name] + float(w)) / 2 for name, w in zip(prior, weights, strict=True)}
    answered = [
        AnsweredQueries(one.texts, own, {name: of[i].max(axis=1) for name, of in scores.items()})
        for i, (one, own) in enumerate(zip(made, keys, strict=True))
    ]
    return LearnedWeights(heads, columns, answered)


def made_scores(
    made: MadeQueries,
    head: str,
    encoder: TextEncoder,
    learned: FittedEncoder | None = None,
    analyzer: Analyzer | None = None,
) -> ColumnScores:
    """A dense head's scores of the sampled items.

    Encoders learned from the catalog are learned anew without these: a word that one item alone has
    would give it away. Static keeps its weights, which have counted their texts, too: they say how
    rare a token is, not where it stands.
    """
    if head in LEARNED:
        language = (analyzer or Analyzer()).language
        if learned is not None and len(made.texts) > MOST_LEFT_OUT * len(made.outside[0]):
            learned = learned._replace(directions=None)
        encoder = learned_encoder(head, made.outside, language, learned).encoder
    encode = encoder.encode_many
    columns = [encode(texts) for texts in made.keys]
    return ColumnScores.of(encode(made.texts), columns, np.eye(len(made.texts), dtype=np.float32))


def made_lexical_keys(made: MadeQueries, analyzer: Analyzer) -> LexicalKeys:
    """Of the sampled items alone."""
    columns = AnalyzedTexts.of_columns(made.keys, analyzer)
    return LexicalKeys.from_counts(*AnalyzedTexts.joined(columns).key_counts())


# --- judged queries ---


class JudgedQueries(NamedTuple):
    """Queries with answers in a catalog: their texts, of each the row numbers of the items that
    answer it, the best first; and the judged items that are not in the catalog.
    """

    texts: list[str]
    answers: list[np.ndarray]
    unknown: list[str]

    def chosen(self, rng: np.random.Generator) -> np.ndarray:
        """The rows that weights are learned from, int64, ascending: at most `MOST_JUDGED`."""
        every = np.arange(len(self.texts))
        if len(every) <= MOST_JUDGED:
            return every
        return np.sort(rng.choice(every, MOST_JUDGED, replace=False))

    def fingerprints(self, seed: int = 0) -> str:
        """By which `judgements.among` knows those that weights were learned from with this seed."""
        return fingerprints(self.texts[i] for i in self.chosen(np.random.default_rng(seed)))

    def summary(self) -> str:
        """What the weights were learned from, and what was of no use.

        >>> JudgedQueries(["deep sea"], [np.array([3])], ["v9"]).summary()
        '1 judged query; 1 judged item is not in the catalog: v9'
        """
        n, gone = len(self.texts), len(self.unknown)
        found = f"{n:,} judged {'query' if n == 1 else 'queries'}"
        if not gone:
            return found
        shown = listed_names(self.unknown, SHOWN_NAMES)
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


def learn_columns_from_judgements(
    judged: JudgedQueries,
    encoder: TextEncoder,
    columns: Sequence[np.ndarray],
    given: np.ndarray,
    seed: int = 0,
) -> np.ndarray:
    """The weights (n_columns,) of a dense head's columns under which the answers are most likely,
    with the given ones counting like 100 queries, as in `learn_from_judgements`.

    encoder: the head's. columns: what it makes of each column, (n_items, d); of more than 4,000
    items a sample is chosen among, with the best answers.
    """
    rng = np.random.default_rng(seed)
    chosen, n_items = judged.chosen(rng), len(columns[0])
    items = np.arange(n_items)
    if n_items > MOST_ITEMS:
        best = [judged.answers[i][: max(1, MOST_ITEMS // len(chosen))] for i in chosen]
        items = np.union1d(np.concatenate(best), rng.choice(n_items, MOST_ITEMS, replace=False))
    answers = np.stack([np.isin(items, judged.answers[i]) for i in chosen]).astype(np.float32)
    answers /= answers.sum(axis=1, keepdims=True)
    queries = encoder.encode_many([judged.texts[i] for i in chosen])
    found = ColumnScores.of(queries, [column[items] for column in columns], answers)
    share = len(chosen) / (len(chosen) + PRIOR_QUERIES)
    return np.asarray(share * likeliest([found], given) + (1 - share) * given)


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
    """BM25 (queries, n_items) of words, and of their families where texts are short; zeros for a
    query of unknown words."""
    scores = np.zeros((len(texts), keys.n_items), dtype=np.float32)
    is_short = len(keys.indices) <= MAX_MEAN_LENGTH * keys.n_items

    @cache
    def asked(token: Token) -> QueryTerm:
        others = keys.vocabulary.with_prefix(token.term[:MIN_PREFIX]) if is_short else []
        related = related_terms(token.term, others).items()
        return QueryTerm.of(token).also(Expansion(other, other, w) for other, w in related)

    for row, text in zip(scores, texts, strict=True):
        tokens = resolve_code(analyzer.query_tokens(text), keys.has)
        if (head := keys.head([asked(token) for token in tokens])) is not None:
            row[:] = head.scores
    return scores
