"""The probability that a catalog answers a query, by its words and the best score of each head.

Evidence is a number for the words and one for each head, in standard deviations from the mean of
texts that the catalog cannot answer. These are in the same kind of letters: to an encoder that
knows few letters of a script, all texts in it are similar. A logistic curve turns the mean into a
probability (Platt 1999, "Probabilistic outputs for support vector machines", section 2).
`calibration` measures the texts and fits the curve.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from math import exp, log1p
from typing import Any, NamedTuple

import numpy as np

from qkvsearch.heads.bm25 import TermKeys
from qkvsearch.text.analysis import Token
from qkvsearch.text.encoders import LEARNED

# The name among the facts of a build, and the name of the words' evidence beside those of heads.
FACT, WORDS = "answerability", "words"
# Kinds of letters, after accents are folded.
LATIN, OTHER = "latin", "other"
# Evidence of more standard deviations is certain, and is cut.
MAX_STRENGTH = 8.0
# An item matches a query if it is more similar than the most similar item is to texts that cannot
# be answered, by so many standard deviations.
MATCHING = 2.5
# Scores that differ by less are equal.
MIN_SPREAD = 1e-6


class BestScore(NamedTuple):
    """The best score of a head for one text, or for each of several texts."""

    score: Any
    # How many standard deviations it is above the mean of all items' scores.
    deviations: Any

    @classmethod
    def of_rows(cls, scores: np.ndarray) -> BestScore:
        """Return the best scores of texts, given those of all items, (n_texts, n_items)."""
        best = scores.max(axis=1, initial=0)
        if not scores.shape[1]:
            return cls(best, best)
        spread = np.maximum(scores.std(axis=1, dtype=np.float64), MIN_SPREAD)
        return cls(best, (best - scores.mean(axis=1, dtype=np.float64)) / spread)


class Evidence(NamedTuple):
    """The evidence that a catalog answers a text."""

    # The kind of letters of most of its words.
    letters: str
    # For `WORDS` and by head, a number or one for each of several items.
    values: Mapping[str, Any]


class WordStatistics(NamedTuple):
    """What a catalog has of the words of a text."""

    # How many words the text has.
    n: int
    # The kind of letters of most of them.
    letters: str
    # The share of them that are in the catalog.
    share: float
    # How common they are, from 0 to 1: the mean of ln(1 + n) / ln(1 + N), for n of N items.
    common: float
    # The fewest items that have one of the words in the catalog; 0 without any.
    rarest: int
    # By term, the most that it adds to a lexical score.
    largest: Mapping[str, float]

    @classmethod
    def of(cls, keys: TermKeys, tokens: Sequence[Token]) -> WordStatistics:
        """Look up the words in the lexical keys of a catalog."""
        terms = [token.term for token in tokens]
        letters = letters_of(tokens)
        # How many items have each of the words that any item has.
        n_with = list(filter(None, map(keys.n_with, terms)))
        if not n_with:
            return cls(len(terms), letters, 0.0, 0.0, 0, {})
        return cls(
            n=len(terms),
            letters=letters,
            share=len(n_with) / len(terms),
            common=sum(map(log1p, n_with)) / log1p(keys.n_items) / len(terms),
            rarest=min(n_with),
            largest={term: keys.largest(term) for term in terms},
        )

    def evidence(self, best: Mapping[str, Any]) -> Evidence:
        """Return the evidence for `WORDS` and by head. best: the highest score of each head, or
        those of several items; 0 where it knows no word.

        The value of the words is how common they are. The value of the lexical head is how many
        words the best item has, where the rarest word counts as 1. The value of a dense head is the
        cosine, times the share of words that are in the catalog if the encoder was learned from it
        and so read only these.
        """
        values: dict[str, Any] = {WORDS: self.common}
        largest = max(self.largest.values(), default=0.0)
        for head, score in best.items():
            if head == "lexical" and largest > 0:
                values[head] = score / largest
            elif head == "lexical":  # then only codes or related words have a score
                values[head] = 1.0 * (score > 0)
            elif head in LEARNED:
                values[head] = score * self.share
            else:
                values[head] = score
        return Evidence(self.letters, values)


def letters_of(tokens: Sequence[Token]) -> str:
    """Return the kind of letters of most words.

    >>> letters_of([Token("cafe", "cafe"), Token("注意", "注意"), Token("意力", "意力")])
    'other'
    """
    if "".join(token.text for token in tokens).isascii():
        return LATIN
    n_latin = sum(token.text.isascii() for token in tokens)
    return LATIN if 2 * n_latin >= len(tokens) else OTHER


@dataclass(frozen=True)
class Answerability:
    """The test of whether a build answers a query."""

    # Mean and standard deviation of the evidence of texts that cannot be answered: by kind of
    # letters, and then for `WORDS` and by head.
    noise: Mapping[str, Mapping[str, Sequence[float]]]
    # Of the logistic curve.
    slope: float
    intercept: float
    # The probability up to which evidence says no.
    level: float
    # The texts that the curve was fitted to.
    learned_from: str
    # The heads to which even texts about something else are similar, if they are in the same
    # language. The value of such a head is how far a score stands out among those of all items.
    relative: Sequence[str] = ()

    @classmethod
    def of(cls, facts: Mapping[str, Any]) -> Answerability:
        """Read it from the facts of a build."""
        return cls(**facts[FACT])

    def to_fact(self) -> dict[str, Any]:
        """Return it as it is stored among the facts."""
        return asdict(self)

    def values(self, best: Mapping[str, BestScore]) -> dict[str, Any]:
        """Return what counts of each head's best score as its evidence."""
        return {
            name: of_head.deviations if name in self.relative else of_head.score
            for name, of_head in best.items()
        }

    def strength(self, evidence: Evidence, weights: Mapping[str, float]) -> Any:
        """Return how strong the evidence is, in standard deviations from texts without an answer.

        It is the mean of three values: of the words, of the lexical head, and of the dense heads,
        which are weighed as in a search. Dense heads that all have no weight rank by themselves,
        and count the same.
        """
        noise = self.noise[evidence.letters]
        strengths: dict[str, Any] = {}
        for name, value in evidence.values.items():
            mean, deviation = noise[name]
            cut = np.minimum((value - mean) / deviation, MAX_STRENGTH)
            strengths[name] = np.maximum(cut, -MAX_STRENGTH)
        groups = [strengths.pop(name) for name in (WORDS, "lexical") if name in strengths]
        if strengths:
            total = sum(weights[name] for name in strengths)
            shares = {
                name: weights[name] / total if total > 0 else 1 / len(strengths)
                for name in strengths
            }
            groups.append(sum(shares[name] * value for name, value in strengths.items()))
        return sum(groups) / len(groups)

    def match_level(self, head: str, letters: str) -> float:
        """Return the value of a dense head above which an item matches a query in these letters: a
        cosine, or for a `relative` head standard deviations.

        >>> noise = {"latin": {"lsa": (0.25, 0.05)}}
        >>> round(Answerability(noise, 1.0, 0.0, 0.5, "").match_level("lsa", "latin"), 3)
        0.375
        """
        return self.noise_level(head, letters, MATCHING)

    def noise_level(self, head: str, letters: str, deviations: float) -> float:
        """Return the value of a head that is so many standard deviations above that of texts
        without an answer.
        """
        mean, deviation = self.noise[letters][head]
        return mean + deviations * deviation

    def probability(self, strength: float) -> float:
        """Return the probability that the catalog answers a query with evidence of this strength.

        >>> Answerability({}, 1.0, -2.0, 0.5, "").probability(2.0)
        0.5
        """
        return 1 / (1 + exp(-(self.slope * strength + self.intercept)))
