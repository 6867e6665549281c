"""How well a hit matches a query: strong, good or weak.

A logistic regression of four numbers says how likely a hit is right. The numbers have no unit and
do not depend on the length of a text, so that what one set of judged queries teaches holds on
others. benchmarks/defaults/grades.py fits it on TED's dev queries, and
benchmarks/claims/match_grades.py measures what the grades are worth on sets that it did not see.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import log1p
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from qkvsearch._utils.caching import cached_property
from qkvsearch.heads.bm25 import QueryTerm, TermKeys
from qkvsearch.heads.lookup import Lookup
from qkvsearch.heads.single_units import PARTICLES, SingleUnits
from qkvsearch.heads.stored_models import StoredModels
from qkvsearch.heads.unit_phrases import has_unspaced, overlap, units_of
from qkvsearch.heads.word_index import WordIndex
from qkvsearch.rank.answerable import are_near
from qkvsearch.rank.named_things import are_named, named_things, terms_by_word
from qkvsearch.scores.fusion import Scores
from qkvsearch.text.analysis import HAS_CJK, HAS_UNSPACED, Token

STRONG, GOOD, WEAK = "strong", "good", "weak"
# A hit that has this share of the query's words, by their weight, and has them together is strong.
MOST = 0.8
# A hit that has this share of them is not weak.
MUCH = 0.6
# A hit of a query of so few words is strong only if it has `MUCH` of them. Where texts have at most
# the share `KNOWN` of them, it is weak with less than `LITTLE`. A near meaning is never weak, but
# where it is near for the few words that it has.
FEW_WORDS, KNOWN, LITTLE = 5, 0.6, 0.38
# In scripts without spaces, pairs that no text has count nothing in the share of a hit. Where texts
# have at most this share of a query, a hit with less than `FEW_PAIRS` of the rest is weak.
KNOWN_UNSPACED, FEW_PAIRS = 0.6, 0.25
# Of a query of so many pairs, a hit with this share of it in short columns is not weak.
FEW_PAIRS_TYPED, IN_SHORT = 8, 0.4
# The words of a long text stand together where so many words have them.
PASSAGE = 30
# A word whose `rarity` in the language is below this one is common.
COMMON = 0.6
# The rarity of a word counts to this power. It is a factor of BM25, too, which with a power of 1
# ranks best; but what a query asks for is in its rarer words.
RARITY_POWER = 2
# Pairs of Chinese characters by which a query only asks, as "how do you" does.
ASKING_PAIRS = frozenset(
    (
        *("怎么", "么样", "么办", "么做", "怎样", "如何", "什么", "为什", "是什", "么是"),
        *("多少", "少钱", "哪里", "哪个", "哪些", "哪儿", "是谁", "谁是"),
    )
)
# How many words a pair of units is in scripts without spaces: a Chinese word has 1.6 to 1.7.
PAIR_WEIGHT = 0.6
# How many pairs of letters of Thai and the like are a word, which is longer than one of Chinese.
PAIRS_OF_A_WORD = 3
# The logarithm of the rank in meaning where no head tells it: about that of a right first hit.
UNKNOWN_RANK = 0.7
# Ranks beyond the tenth are all as far.
FIRST_RANKS = 10
MAX_RANK = log1p(FIRST_RANKS)
NO_ITEMS = np.zeros(0, np.int32)
# The ranks of so many items are counted one by one.
MAX_COUNTED = 100


@dataclass(frozen=True)
class Grader:
    """The logistic regression, and the probabilities from which and below which grades begin."""

    # A factor for each of the numbers of `Numbers`, by name.
    factors: Mapping[str, float]
    intercept: float
    # A hit that is as likely to be right is strong.
    strong: float
    # A hit that is less likely to be right is weak.
    weak: float

    def probabilities(self, numbers: Numbers) -> np.ndarray:
        """Return how likely each hit is right, (n,)."""
        logits: Any = self.intercept
        for name, values in numbers._asdict().items():
            logits = logits + self.factors[name] * values
        return np.asarray(1 / (1 + np.exp(-logits)))


class Numbers(NamedTuple):
    """What the probability that a hit is right is computed from, each (n,) for n hits."""

    # How far the fused score is above that of the next item, as a share of how far it is above the
    # mean of all items; 0 for an item that another is above.
    lead: np.ndarray
    # The share of the query's words that the hit has, by their weight.
    share: np.ndarray
    # How much the words of the query tell: ln(1 + the sum of their weights).
    words: np.ndarray
    # The mean of ln(1 + rank) in the dense heads, where the best item has rank 0.
    rank: np.ndarray


@cache
def grader() -> Grader:
    """Return what benchmarks/defaults/grades.py fitted."""
    path = Path(__file__).with_name("grades.json")
    return Grader(**json.loads(path.read_text(encoding="utf-8")))


def grades(
    models: StoredModels,
    query: Lookup,
    tokens: Sequence[Token],
    fused: Scores,
    positions: np.ndarray,
    codes: Scores | None,
) -> list[str]:
    """Return whether each hit is a strong, a good or a weak match of the query.

    A hit is strong if it has a code of the query, if it has nearly all of its words together, or if
    it is likely to be right. It is weak if it is unlikely to be right and does not have most words.
    Of a query of few words a hit that is likely to be right needs most of them to be strong. It is
    weak if it has few of them and the catalog lacks many, and not if its meaning is near. In
    scripts without spaces a hit of any query is weak that has few pairs of it where the catalog
    lacks 40 % of them. A hit that is called what the query names is not weak (`named_things`). One
    that no head of the text speaks for is weak, whatever a user's taste says.

    A hit of a long text is graded by its best passage.

    tokens: all words of the query in order, with stop words. fused: with the `raw` scores of the
    heads.
    """
    keys: TermKeys = models.lexical_keys
    index, rows = models.words, positions
    if fused.best is not None and models.units is not None:
        # What is graded is the best passage of a long text.
        keys, index = models.units.terms, models.units.words
        rows = fused.best.of_items[positions]
    words = QueryWords.of(keys, index, query, tokens, rows)
    is_strong, is_weak = _judged(models, query, tokens, words, fused, positions)
    is_strong |= words.together(index, rows) >= MOST
    if codes is not None:
        is_strong |= codes.scores[positions] > 0
    return np.where(is_strong, STRONG, np.where(is_weak, WEAK, GOOD)).tolist()


def weak_items(
    models: StoredModels,
    query: Lookup,
    tokens: Sequence[Token],
    fused: Scores,
    codes: Scores | None,
) -> np.ndarray:
    """Return which items `grades` calls weak, bool (n_items,). The arguments are those of `grades`.

    Where the words of an item stand is not asked: only an item that has most of them can be strong
    by that, and such an item is not weak.
    """
    positions = np.arange(models.n_items)
    keys: TermKeys = models.lexical_keys
    index, rows = models.words, positions
    if fused.best is not None and models.units is not None:
        keys, index = models.units.terms, models.units.words
        rows = fused.best.of_items
    words = QueryWords.of(keys, index, query, tokens, rows)
    _, is_weak = _judged(models, query, tokens, words, fused, positions)
    if codes is not None:
        is_weak &= codes.scores <= 0
    return is_weak


def _judged(
    models: StoredModels,
    query: Lookup,
    tokens: Sequence[Token],
    words: QueryWords,
    fused: Scores,
    positions: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Return which hits are strong and which are weak by their probabilities and by the share of
    the words that they have, bool (n,) each.
    """
    fitted = grader()
    probabilities = fitted.probabilities(numbers(models, words, fused, positions))
    has_much = words.shares >= MUCH
    is_strong = probabilities >= fitted.strong
    is_weak = (probabilities < fitted.weak) & ~has_much
    if query.words.share <= KNOWN_UNSPACED and has_unspaced(query.tokens):
        is_weak |= words.shares < FEW_PAIRS
        is_strong &= ~is_weak
    if words.n <= FEW_WORDS:
        is_strong &= has_much
        if fused.near is None:
            is_near = are_near(models, query.words, fused.raw, positions)
        else:
            is_near = fused.near[positions]
        if query.words.share <= KNOWN:
            is_weak |= words.shares < LITTLE
            # A hit with one of two words is near for that word, which says nothing new.
            is_near &= words.shares == 0
        is_weak &= ~is_near
    if is_weak.any():
        is_weak[is_weak] = ~_is_asked_for(models, query, tokens, words, positions, is_weak)
    is_spoken_for = (words.shares > 0) | _is_spoken_for(fused.raw, positions)
    return is_strong & is_spoken_for, is_weak | ~is_spoken_for


def _is_spoken_for(heads: Mapping[str, Scores], positions: np.ndarray) -> np.ndarray:
    """Return which hits a head of the text scores higher than the average item, or finds a word in,
    bool (n,). Others are hits by a user's taste, or because all items are asked for. A head that
    scores all items alike speaks against none.
    """
    is_spoken_for = np.zeros(len(positions), dtype=bool)
    for head in heads.values():
        mean, deviation = head.moments
        is_spoken_for |= (head.scores[positions] > mean) | (deviation == 0)
        if head.covered is not None:
            is_spoken_for |= head.covered[positions]
    return is_spoken_for


def _is_asked_for(
    models: StoredModels,
    query: Lookup,
    tokens: Sequence[Token],
    words: QueryWords,
    positions: np.ndarray,
    is_weak: np.ndarray,
) -> np.ndarray:
    """Return which of the weak hits are what the query names, although they lack words of it, bool
    (n_weak,). In scripts without spaces, these are also hits with much of it in short columns.

    is_weak: bool (n,) for the n positions.
    """
    positions = positions[is_weak]
    asking = asking_terms(tokens, models.lexical_keys.rarity)
    terms = terms_by_word(query.tokens, query.terms)
    within = np.zeros(models.n_items, dtype=bool)
    within[positions] = True
    is_asked_for = are_named(models, named_things(models, tokens, terms, asking), within)[positions]
    if has_unspaced(query.tokens) and words.n <= FEW_PAIRS_TYPED:
        # To find the columns of words takes longer than to find their items.
        has_enough = words.shares[is_weak] >= IN_SHORT
        in_short = words.short_shares(models.words, positions[has_enough]) >= IN_SHORT
        is_asked_for[has_enough] |= in_short
    return is_asked_for


def numbers(
    models: StoredModels, words: QueryWords, fused: Scores, positions: np.ndarray
) -> Numbers:
    """Return what the grades of hits are computed from."""
    return Numbers(
        lead=_lead(fused, positions),
        share=words.shares,
        words=np.full(len(positions), log1p(float(words.weights.sum()))),
        rank=_rank_in_meaning(models, fused.raw, positions),
    )


def _lead(fused: Scores, positions: np.ndarray) -> np.ndarray:
    """Return by how much each hit leads, (n,). All items count, whether they may be hits or not."""
    # A rule of the owner makes no other hit a better or a worse match.
    evidence = fused.evidence()
    scores = evidence.scores
    if len(scores) < 2:
        return np.ones(len(positions))
    best_position = int(scores.argmax())
    best = float(scores[best_position])
    second = max(
        float(scores[:best_position].max(initial=-np.inf)),
        float(scores[best_position + 1 :].max(initial=-np.inf)),
    )
    height = best - evidence.moments[0]
    lead = (best - second) / height if height > 0 else 0.0
    return np.where(scores[positions] >= best, lead, 0.0)


def _rank_in_meaning(
    models: StoredModels, heads: Mapping[str, Scores], positions: np.ndarray
) -> np.ndarray:
    """Return the mean of ln(1 + rank) of each hit in the dense heads, weighed as by the build."""
    dense = [name for name in models.dense_heads if name in heads]
    if not dense:
        return np.full(len(positions), UNKNOWN_RANK)
    weights = np.array([models.head_weights[name] for name in dense])
    if not weights.any():
        weights = np.ones(len(dense))
    means = np.full(len(positions), MAX_RANK)
    ranked = _first_in_a_head([heads[name].scores for name in dense], positions)
    ranks = np.array([_ranks(heads[name].scores, positions[ranked]) for name in dense])
    mean = weights @ np.log1p(ranks) / weights.sum()
    means[ranked] = np.minimum(mean, MAX_RANK)
    return means


def _first_in_a_head(all_scores: Sequence[np.ndarray], positions: np.ndarray) -> np.ndarray:
    """Return the indices of the positions whose mean rank may be below the largest one.

    A mean is below `MAX_RANK` only if a rank is. To count the ranks of a few items takes less time
    than to find out which they are, and of all items a hundred thousand times as long.
    """
    if len(positions) <= MAX_COUNTED:
        return np.arange(len(positions))
    n_first = min(FIRST_RANKS + 1, len(all_scores[0]))
    is_first = np.zeros(len(all_scores[0]), dtype=bool)
    for scores in all_scores:
        is_first |= scores >= np.partition(scores, -n_first)[-n_first]
    return np.flatnonzero(is_first[positions])


def _ranks(scores: np.ndarray, positions: np.ndarray) -> np.ndarray:
    """Return how many items have a higher score than each of these, (n,)."""
    if len(positions) <= FIRST_RANKS:
        # To find which scores are equal takes longer than to count these few.
        counts = [np.count_nonzero(scores > score) for score in scores[positions]]
        return np.array(counts, dtype=np.int64)
    distinct, which = np.unique(scores[positions], return_inverse=True)
    ranks = [int(np.count_nonzero(scores > score)) for score in distinct]
    return np.array(ranks, dtype=np.int64)[which]


# --- the words that a query and a hit share ---


@dataclass(frozen=True)
class QueryWords:
    """The words of a query, and which hits have them.

    In scripts without spaces they are pairs of units (characters, or letters with their vowels),
    which overlap. Each counts `PAIR_WEIGHT`. Pairs that no text has count nothing, since most of
    them are the end of a word and the beginning of the next one; nor do `_is_seam` pairs. A unit
    that is in no other pair counts as a word that only a hit has where it is a word of its own
    (`SingleUnits`): nearly every long text has it somewhere.
    """

    # How many words there are. Each pair of Chinese characters is one.
    n: float
    # How much each word counts, (n_words,): its idf times its rarity in the language squared.
    weights: np.ndarray
    # The items that have each word, ascending rows.
    items: Sequence[np.ndarray]
    # What each is looked up by.
    terms: Sequence[QueryTerm]
    # The rows of the hits, (n,).
    positions: np.ndarray
    # Of the items, or of the passages.
    n_rows: int

    @classmethod
    def of(
        cls,
        keys: TermKeys,
        index: WordIndex,
        query: Lookup,
        tokens: Sequence[Token],
        positions: np.ndarray,
    ) -> QueryWords:
        """Look the words of a query up. tokens: all of them in order, with stop words."""
        asking = asking_terms(tokens, keys.rarity)
        pairs = list(zip(query.tokens, query.terms, strict=False))
        asked_for = [(token, term) for token, term in pairs if token.term not in asking] or pairs
        words = [_KnownWord.of(keys, token, term) for token, term in asked_for]
        n_words: float = len(words)
        if has_unspaced(query.tokens):
            n_words = sum(1 / PAIRS_OF_A_WORD if _is_thai(word.text) else 1 for word in words)
            alone = SingleUnits.of(keys, index, query.tokens)
            as_words = {} if alone is None else alone.as_words
            words = _without_overlap(keys, words, as_words)
        return cls(
            n=n_words if words else 0,
            weights=np.array([word.weight for word in words]),
            items=[word.items for word in words],
            terms=[word.term for word in words],
            positions=positions,
            n_rows=keys.n_items,
        )

    def short_shares(self, index: WordIndex, items: np.ndarray) -> np.ndarray:
        """Return the share of the words that items have in short columns, (n,): in their titles
        and values, not somewhere in a long text. index: of the items, not of their passages.
        """
        found = np.zeros(index.n_items)
        for weight, word in zip(self.weights, self.terms, strict=True):
            found += weight * index.in_columns(sorted(_ways(word)), items, PASSAGE)
        return found[items] / max(float(self.weights.sum()), 1e-9)

    @cached_property
    def shares(self) -> np.ndarray:
        """The share of the words that each hit has, by their weights, (n,); 0 without words.

        The weights are added in the order of the words, however many hits there are, so that a
        share does not depend on what else is graded.
        """
        if len(self.positions) > MAX_COUNTED:
            of_rows = np.zeros(self.n_rows)
            for weight, items in zip(self.weights, self.items, strict=True):
                of_rows[items] += weight
            found = of_rows[self.positions]
        else:
            found = np.zeros(len(self.positions))
            # The type of the items that have a word, which are not copied to compare them.
            positions = self.positions.astype(np.int32)
            for weight, items in zip(self.weights, self.items, strict=True):
                found += weight * _has(items, positions)
        return found / max(float(self.weights.sum()), 1e-9)

    def together(self, index: WordIndex, positions: np.ndarray) -> np.ndarray:
        """Return the share of the words that each hit has together, (n,); 0 below `MOST`.

        These are the words in its short columns, and those in one passage of a long one.
        """
        shares = np.where(self.shares >= MOST, self.shares, 0.0)
        if not shares.any():
            return shares
        terms = sorted({term for word in self.terms for term in _ways(word)})
        for i in np.flatnonzero(shares):
            if index.length(int(positions[i])) <= PASSAGE:
                continue
            places = index.places(terms, int(positions[i]), PASSAGE)
            shares[i] *= self._densest(terms, places)
        return shares

    def _densest(self, terms: Sequence[str], places: tuple[np.ndarray, np.ndarray]) -> float:
        """Return which part of the hit's own share is together. places: see `WordIndex.places`."""
        slots, numbers = places
        number_of = {term: number for number, term in enumerate(terms)}
        starts = np.unique(slots)
        together = np.zeros(len(starts))
        present = 0.0
        for weight, word in zip(self.weights, self.terms, strict=True):
            own = slots[np.isin(numbers, [number_of[term] for term in _ways(word)])]
            if not len(own):
                continue
            present += weight
            # The next place of the word from each start on, or a place in a short column.
            following = np.append(own, np.iinfo(np.int64).max)[own.searchsorted(starts)]
            together += weight * ((following < starts + PASSAGE) | (own[0] < 0))
        return float(together.max(initial=0.0)) / present if present > 0 else 1.0


def _has(items: np.ndarray, positions: np.ndarray) -> np.ndarray:
    """Return which of the positions are among ascending items, bool (n,)."""
    if not len(items):
        return np.zeros(len(positions), dtype=bool)
    return np.asarray(items.take(items.searchsorted(positions), mode="clip") == positions)


class _KnownWord(NamedTuple):
    """A word of a query as the catalog has it."""

    text: str
    weight: float
    # The items that have it, ascending rows.
    items: np.ndarray
    # How many items have it, in whatever place.
    n_items: int
    term: QueryTerm

    @property
    def is_known(self) -> bool:
        """Whether any item has it."""
        return self.n_items > 0

    @classmethod
    def of(cls, keys: TermKeys, token: Token, term: QueryTerm) -> _KnownWord:
        items = keys.items_with(term)
        idf = keys.idf_of(len(items))
        rarity = keys.rarity.get(token.term, 1.0) ** RARITY_POWER
        return cls(token.text, idf * rarity * term.boost, items, len(items), term)


def _ways(term: QueryTerm) -> set[str]:
    """Return the terms of texts by which a word is found."""
    return {expansion.term for expansion in term.expansions}


def asking_terms(tokens: Sequence[Token], rarity: Mapping[str, float]) -> set[str]:
    """Return the terms of the words by which a query only asks, as in "how do you deal with bees".

    They are words that are common in the language, at its beginning. The last stop word that other
    words follow ends them.

    >>> from qkvsearch.text.analysis import Analyzer
    >>> tokens = Analyzer().tokens("how do you deal with bees")
    >>> asking_terms(tokens, {"deal": 0.5})
    {'deal'}
    """
    asking: set[str] = set()
    common: set[str] = set()
    for i, token in enumerate(tokens):
        if not token.is_stop_word and rarity.get(token.term, 1.0) >= COMMON:
            break
        if token.is_stop_word and not all(other.is_stop_word for other in tokens[i:]):
            asking = set(common)
        elif not token.is_stop_word:
            common.add(token.term)
    asked_for = {token.term for token in tokens if not token.is_stop_word} - asking
    return asking if asked_for else set()


def _is_thai(text: str) -> bool:
    """Return whether a word is of a script such as Thai, where `units` are letters with vowels."""
    return HAS_UNSPACED(text) is not None and not HAS_CJK(text)


def _is_pair(text: str) -> bool:
    """Return whether a word is two units of a script without spaces."""
    return len(units_of(text)) == 2


def _without_overlap(
    keys: TermKeys,
    found: Sequence[_KnownWord],
    as_words: Mapping[str, np.ndarray],
) -> list[_KnownWord]:
    """Return the words with each run of overlapping pairs as `_by_units` has it."""
    words: list[_KnownWord] = []
    for run in _runs(found):
        words += _by_units(keys, run, as_words) if _is_pair(run[0].text) else run
    return words


def _runs(found: Sequence[_KnownWord]) -> list[list[_KnownWord]]:
    """Return overlapping pairs of units together, and all other words one by one."""
    runs: list[list[_KnownWord]] = []
    for word in found:
        if runs and overlap(units_of(runs[-1][-1].text), units_of(word.text)):
            runs[-1].append(word)
        else:
            runs.append([word])
    return runs


def _is_seam(pairs: Sequence[_KnownWord], i: int) -> bool:
    """Return whether a pair is the end of a word and the beginning of the next one, as 利波 of
    哈利波特: both pairs around it are in at least twice as many texts.
    """
    if not 0 < i < len(pairs) - 1:
        return False
    n_around = min(pairs[i - 1].n_items, pairs[i + 1].n_items)
    return n_around >= 2 * pairs[i].n_items


def _by_units(
    keys: TermKeys,
    pairs: Sequence[_KnownWord],
    as_words: Mapping[str, np.ndarray],
) -> list[_KnownWord]:
    """Return what a run of overlapping pairs asks for: the pairs that texts have, and each unit
    that is in none of these, which a hit has only as a word. All count `PAIR_WEIGHT`.

    as_words: by unit, the items that have it as a word.
    """
    if all(pair.text in ASKING_PAIRS for pair in pairs):
        return [pair._replace(weight=PAIR_WEIGHT * pair.weight) for pair in pairs]
    parts = [
        pair
        for i, pair in enumerate(pairs)
        if pair.is_known and not _is_seam(pairs, i) and pair.text not in ASKING_PAIRS
    ]
    units = [units_of(pairs[0].text)[0], *(units_of(pair.text)[1] for pair in pairs)]
    for i, unit in enumerate(units):
        if unit in PARTICLES:
            continue
        with_unit = pairs[max(i - 1, 0) : i + 1]
        if not any(pair.is_known or pair.text in ASKING_PAIRS for pair in with_unit):
            token = Token(unit, unit)
            unit_found = _KnownWord.of(keys, token, QueryTerm.of(token))
            items = as_words.get(unit, NO_ITEMS)
            parts.append(unit_found._replace(items=items))
    return [part._replace(weight=PAIR_WEIGHT * part.weight) for part in parts]
