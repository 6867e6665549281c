"""How likely a catalog answers a query: what its words and each head's best score say, compared
with what they say of texts that the catalog cannot answer.

Evidence is one number for the words and one a head, in standard deviations from the mean of such
texts in the same kind of letters: an encoder that knows few letters of a script finds all that is
written in it alike. Its mean becomes a probability by a logistic curve (Platt 1999, "Probabilistic
outputs for support vector machines", section 2). `calibration` measures and fits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from math import exp, log1p
from typing import Any, NamedTuple

from qkvsearch.retrieval.keys import TermKeys
from qkvsearch.text.analysis import Token
from qkvsearch.text.encoders import LEARNED

# What is stored, among the facts of a build; and the words' evidence beside that of heads.
FACT, WORDS = "answerability", "words"
# Kinds of letters, after accents are folded.
LATIN, OTHER = "latin", "other"
# Beyond so many standard deviations, evidence is sure either way.
MOST_SURE = 8.0
# An item matches a query that is so many standard deviations nearer to it than what cannot be
# answered is to its nearest item.
MATCHING = 2.5


class Evidence(NamedTuple):
    """Of one query. letters: the kind of most words. known: the share of words that some item has.
    found: for `WORDS` and by head.
    """

    letters: str
    known: float
    found: Mapping[str, float]

    @classmethod
    def of(cls, keys: TermKeys, tokens: Sequence[Token], best: Mapping[str, float]) -> Evidence:
        """best: the highest score of each head, 0 where it knows no word.

        Of words: how common they are in the catalog, from 0 where it has none of them to 1 where
        each item has all, the mean of ln(1 + n) / ln(1 + N) over the words, which n of N items
        have. Of the lexical head: how many words the best item has, the weightiest as 1. Of others
        the cosine; where an encoder that is learned from the catalog read a share of the words
        alone, that share of it.
        """
        n_with = [keys.n_with(token.term) for token in tokens]
        share = sum(n > 0 for n in n_with) / max(len(tokens), 1)
        largest = max((keys.largest(token.term) for token in tokens), default=0.0)
        common = sum(map(log1p, n_with)) / max(len(tokens), 1)
        found = {WORDS: common / log1p(keys.n_items) if tokens else 0.0}
        for head, score in best.items():
            if head == "lexical":
                found[head] = float(score) / largest if largest > 0 else float(score > 0)
            else:
                found[head] = float(score) * (share if head in LEARNED else 1.0)
        return cls(letters_of(tokens), share, found)


def letters_of(tokens: Sequence[Token]) -> str:
    """The kind of letters that most of the words are of.

    >>> letters_of([Token("cafe", "cafe"), Token("注意", "注意"), Token("意力", "意力")])
    'other'
    """
    n_latin = sum(token.text.isascii() for token in tokens)
    return LATIN if 2 * n_latin >= len(tokens) else OTHER


@dataclass(frozen=True)
class Answerability:
    """What a build knows of queries that it cannot answer.

    noise: by kind of letters, for `WORDS` and by head, mean and standard deviation of the evidence
    of texts that it cannot. slope, intercept: of the logistic curve. level: the probability up to
    which a query has no answer by evidence. learned_from: what the curve was fitted to.
    """

    noise: Mapping[str, Mapping[str, Sequence[float]]]
    slope: float
    intercept: float
    level: float
    learned_from: str

    @classmethod
    def of(cls, facts: Mapping[str, Any]) -> Answerability:
        """As a build has it among its facts."""
        return cls(**facts[FACT])

    def to_fact(self) -> dict[str, Any]:
        """As it is stored."""
        return asdict(self)

    def strength(self, evidence: Evidence, weights: Mapping[str, float]) -> float:
        """The mean of what the words, the lexical head and the dense heads say, these together
        weighed as a search does: in standard deviations from what cannot be answered.
        """
        noise = self.noise[evidence.letters]
        says = {}
        for name, found in evidence.found.items():
            mean, deviation = noise[name]
            says[name] = min(max((found - mean) / deviation, -MOST_SURE), MOST_SURE)
        groups = [says.pop(name) for name in (WORDS, "lexical") if name in says]
        total = sum(weights[name] for name in says)
        if total > 0:
            groups.append(sum(weights[name] / total * value for name, value in says.items()))
        return sum(groups) / len(groups)

    def match_level(self, head: str, letters: str) -> float:
        """The cosine of a dense head above which an item is a match of a query in these letters.

        >>> noise = {"latin": {"lsa": (0.25, 0.05)}}
        >>> round(Answerability(noise, 1.0, 0.0, 0.5, "").match_level("lsa", "latin"), 3)
        0.375
        """
        mean, deviation = self.noise[letters][head]
        return mean + MATCHING * deviation

    def probability(self, strength: float) -> float:
        """That the catalog answers a query with evidence of this strength.

        >>> Answerability({}, 1.0, -2.0, 0.5, "").probability(2.0)
        0.5
        """
        return 1 / (1 + exp(-(self.slope * strength + self.intercept)))
