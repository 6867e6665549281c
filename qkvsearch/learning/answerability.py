"""How likely a catalog answers a query: what its words and each head's best score say, measured
against texts that the catalog cannot answer.

Evidence is one number for the words, and one a head, in standard deviations from the mean of such
texts: sentences in other languages and about other things, and words whose letters are shuffled.
Their mean becomes a probability by a logistic curve (Platt 1999, "Probabilistic outputs for support
vector machines", section 2), fitted to the same texts and to queries that the catalog answers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from math import exp
from typing import Any

import numpy as np

from qkvsearch.learning.head_weights import AnsweredQueries, lexical_scores
from qkvsearch.learning.unrelated_texts import ENGLISH, FOREIGN
from qkvsearch.retrieval.keys import LexicalKeys, TermKeys
from qkvsearch.texts.analysis import Analyzer, Token
from qkvsearch.texts.encoders import LEARNED
from qkvsearch.texts.text_encoder import TextEncoder

# The name of the words' evidence beside those of heads; and of what is stored, among the facts.
WORDS, FACT = "words", "answerability"
# A language of whose words a catalog has a larger share may be the catalog's own.
MOST_KNOWN = 0.2
# The share of sentences about other things, the nearest ones, that the catalog may be about.
MAY_BE_MEANT = 0.2
N_SHUFFLED, N_TITLES = 50, 200
# Deviations that are smaller say that few texts were met, not that these are all alike.
SMALLEST = {WORDS: 0.04, "lexical": 0.3}
SMALLEST_COSINE = 0.04
# Beyond, evidence is sure either way.
MOST_SURE = 8.0
# The shares of texts that cannot be answered which stay below the level, and have no match.
NOISE_QUANTILE, MATCH_QUANTILE = 0.95, 0.98

# Scores held at a time, of all items and some texts: 64 MiB.
MOST_SCORES = 1 << 24

# Texts to each head's best scores, float (n_texts,).
BestScores = Callable[[Sequence[str]], Mapping[str, np.ndarray]]


@dataclass(frozen=True)
class Answerability:
    """What a build knows of queries that it cannot answer.

    noise: mean and standard deviation of the evidence of texts that it cannot, for `WORDS` and by
    head. matches: the cosine from which an item is a match of the query, by dense head. slope,
    intercept: of the logistic curve. level: the probability below which a query has no answer.
    learned_from: what the curve was fitted to.
    """

    noise: Mapping[str, Sequence[float]]
    matches: Mapping[str, float]
    slope: float
    intercept: float
    level: float
    learned_from: str

    @classmethod
    def of(cls, facts: Mapping[str, Any]) -> Answerability | None:
        """As a build has it among its facts; None in a build of an older version."""
        found = facts.get(FACT)
        return None if found is None else cls(**found)

    def to_fact(self) -> dict[str, Any]:
        """As it is stored."""
        return asdict(self)

    def evidence(
        self, found: Mapping[str, float | np.ndarray], weights: Mapping[str, float]
    ) -> Any:
        """The mean of what the words, the lexical head and the dense heads say, these together
        weighed as a search does; of one query, or of (n,). found: by head, as `evidence` gives it.
        """
        says = {name: self._deviations(name, found[name]) for name in found if name in self.noise}
        dense = [name for name in says if name not in (WORDS, "lexical")]
        groups = [says[name] for name in (WORDS, "lexical") if name in says]
        total = sum(weights[name] for name in dense)
        if total > 0:
            groups.append(sum(weights[name] / total * says[name] for name in dense))
        return sum(groups) / len(groups)

    def probability(self, evidence: float) -> float:
        """That the catalog answers a query with this `evidence`."""
        return 1 / (1 + exp(-(self.slope * evidence + self.intercept)))

    def _deviations(self, name: str, found: Any) -> Any:
        mean, deviation = self.noise[name]
        return np.clip((found - mean) / deviation, -MOST_SURE, MOST_SURE)


# --- evidence ---


def familiarity(keys: TermKeys, tokens: Sequence[Token]) -> float:
    """How common a query's words are in the catalog, from 0 where it has none of them to 1 where
    each item has all: the mean of ln(1 + n) / ln(1 + N) over the words, which n of N items have.
    """
    if not tokens:
        return 0.0
    n_with = np.array([keys.n_with(token.term) for token in tokens])
    return float(np.log1p(n_with).mean() / np.log1p(keys.n_items))


def known_share(keys: TermKeys, tokens: Sequence[Token]) -> float:
    """The share of a query's words that some item has."""
    return float(np.mean([keys.n_with(token.term) > 0 for token in tokens])) if tokens else 0.0


def evidence(
    keys: TermKeys, tokens: Sequence[Token], best: Mapping[str, float]
) -> dict[str, float]:
    """Of one query, for `WORDS` and each head of `best`, whose highest score that is, 0 where it
    knows no word: of the lexical head how many of the query's words, each counted as the weightiest
    does at most, the best item has; of others the cosine, which counts less where an encoder that
    is learned from the catalog read only a share of the words.
    """
    found = {WORDS: familiarity(keys, tokens)}
    share = known_share(keys, tokens)
    for head, score in best.items():
        if head == "lexical":
            largest = max((keys.postings(t.term)[1].max(initial=0) for t in tokens), default=0)
            found[head] = float(score / largest) if largest > 0 else float(score > 0)
        else:
            found[head] = float(score) * (share if head in LEARNED else 1.0)
    return found


def best_scores(
    lexical: LexicalKeys,
    encoders: Mapping[str, TextEncoder],
    keys: Mapping[str, np.ndarray],
    analyzer: Analyzer,
) -> BestScores:
    """The best scores of the heads of a build. encoders: the dense heads'. keys: what each has of
    the items, (n_items, d).
    """
    step = max(1, MOST_SCORES // lexical.n_items)

    def highest(score: Callable[[Sequence[str]], np.ndarray], texts: Sequence[str]) -> np.ndarray:
        blocks = (texts[start : start + step] for start in range(0, len(texts), step))
        return np.concatenate([score(block).max(axis=1, initial=0) for block in blocks])

    def by_words(block: Sequence[str]) -> np.ndarray:
        return lexical_scores(lexical, block, analyzer)

    def best(texts: Sequence[str]) -> dict[str, np.ndarray]:
        def cosines(name: str, block: Sequence[str]) -> np.ndarray:
            return encoders[name].encode_many(block) @ keys[name].T

        dense = {name: highest(partial(cosines, name), texts) for name in encoders}
        return {"lexical": highest(by_words, texts), **dense}

    return best


# --- calibration ---


def unanswerable(
    keys: TermKeys, texts: Sequence[str], rng: np.random.Generator, analyzer: Analyzer
) -> dict[str, list[str]]:
    """Texts that the catalog cannot answer: "foreign" ones, without the languages that the catalog
    may be in; "unrelated" ones, in English, of which it may be about some; and "shuffled", the
    words of `texts` with their letters in another order.
    """

    def known(sentences: Sequence[str]) -> float:
        return float(np.mean([known_share(keys, analyzer.query_tokens(s)) for s in sentences]))

    foreign = [sentences for sentences in FOREIGN.values() if known(sentences) < MOST_KNOWN]
    return {
        "foreign": [sentence for sentences in foreign for sentence in sentences],
        "unrelated": list(ENGLISH),
        "shuffled": [shuffled(text, rng) for text in texts],
    }


def shuffled(text: str, rng: np.random.Generator) -> str:
    """The letters of each word in another order."""
    return " ".join("".join(rng.permutation(list(word))) for word in text.split())


def calibrate(
    keys: TermKeys,
    best_scores: BestScores,
    weights: Mapping[str, float],
    titles: Sequence[str],
    made: Sequence[AnsweredQueries] = (),
    judged: Sequence[str] = (),
    seed: int = 0,
    analyzer: Analyzer | None = None,
) -> Answerability:
    """Measure texts that the catalog cannot answer, and fit the curve to those that it can: judged
    queries, or else made ones, or else its own titles, which say less.

    best_scores: what the heads of `weights` have of texts, "lexical" included.
    """

    reader = analyzer or Analyzer()

    def measured(texts: Sequence[str]) -> dict[str, np.ndarray]:
        return _measured(keys, texts, best_scores(texts), reader)

    rng = np.random.default_rng(seed)
    sample = [titles[i] for i in rng.permutation(len(titles))[:N_TITLES]]
    negative = unanswerable(keys, sample[:N_SHUFFLED], rng, reader)
    noise = {name: measured(texts) for name, texts in negative.items() if texts}
    names = [WORDS, *weights]
    main = names[-1]
    near = noise["unrelated"][main]
    far = near <= np.quantile(near, 1 - MAY_BE_MEANT)
    noise["unrelated"] = {name: values[far] for name, values in noise["unrelated"].items()}
    joined = {name: np.concatenate([of[name] for of in noise.values()]) for name in names}
    spread = {name: _mean_and_deviation(name, joined[name]) for name in names}
    matches = {
        name: float(np.quantile(joined[name], MATCH_QUANTILE))
        for name in names
        if name not in (WORDS, "lexical")
    }
    raw = Answerability(spread, matches, 1.0, 0.0, 0.5, "")
    if judged:
        found, source = [measured(judged)], f"{len(judged):,} judged queries"
    elif made:
        found = [_measured(one.keys, one.texts, one.best, reader) for one in made]
        source = f"{sum(len(one.texts) for one in made):,} made queries"
    else:
        found, source = [measured(sample)], f"{len(sample):,} titles"
    answered = np.concatenate([raw.evidence(of, weights) for of in found])
    unanswered = raw.evidence(joined, weights)
    slope, intercept = logistic_curve(unanswered, answered)
    curve = replace(raw, slope=slope, intercept=intercept, learned_from=source)
    return replace(curve, level=curve.probability(float(np.quantile(unanswered, NOISE_QUANTILE))))


def _measured(
    keys: TermKeys, texts: Sequence[str], best: Mapping[str, np.ndarray], analyzer: Analyzer
) -> dict[str, np.ndarray]:
    """`evidence` of many texts, (n_texts,) each."""
    rows = [
        evidence(keys, analyzer.query_tokens(text), {name: best[name][i] for name in best})
        for i, text in enumerate(texts)
    ]
    return {name: np.array([row[name] for row in rows]) for name in (WORDS, *best)}


def _mean_and_deviation(name: str, values: np.ndarray) -> tuple[float, float]:
    smallest = SMALLEST.get(name, SMALLEST_COSINE)
    return float(values.mean()), max(float(values.std()), smallest)


def logistic_curve(negative: np.ndarray, positive: np.ndarray) -> tuple[float, float]:
    """Slope ≥ 0 and intercept of the likeliest logistic curve, both sides counted alike, towards a
    slope of 1 by as much as one text of each.

    >>> slope, intercept = logistic_curve(np.array([-1.0, 0.0]), np.array([2.0, 3.0]))
    >>> round(-intercept / slope, 2)
    1.0
    """
    from scipy.optimize import minimize

    values = np.concatenate([negative, positive])
    sides = np.concatenate([-np.ones(len(negative)), np.ones(len(positive))])
    counts = np.where(sides < 0, 0.5 / len(negative), 0.5 / len(positive))
    prior = 1 / min(len(negative), len(positive))

    def loss(line: np.ndarray) -> tuple[float, np.ndarray]:
        slope, intercept = line
        margins = sides * (slope * values + intercept)
        wrong = np.exp(-np.logaddexp(0, margins))
        value = counts @ np.logaddexp(0, -margins) + prior * (slope - 1) ** 2
        pull = -counts * sides * wrong
        return float(value), np.array([pull @ values + 2 * prior * (slope - 1), pull.sum()])

    bounds = [(0, None), (None, None)]
    best = minimize(loss, np.array([1.0, 0.0]), jac=True, bounds=bounds, method="L-BFGS-B").x
    return float(best[0]), float(best[1])
