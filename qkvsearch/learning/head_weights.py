"""How much each head should count on this catalog, learned from queries made of its own texts.

A column of some items is taken away and its words are asked for; what is left of those items should
be found. Queries that someone judged say more: `judged_weights` learns from those.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from types import MappingProxyType

import numpy as np

from qkvsearch.learning.conditional_logit import (
    Alternatives,
    Scores,
    conditional_logit,
    standardised,
)
from qkvsearch.learning.judged_weights import lexical_scores
from qkvsearch.retrieval.keys import LexicalKeys
from qkvsearch.texts.analysis import Analyzer
from qkvsearch.texts.encoders import LEARNED, TextEncoder, learned_encoder
from qkvsearch.texts.item_keys import item_keys
from qkvsearch.texts.vocabulary import count_terms

# A fifth of the items, at most 500, are asked for, each by a passage of at most 25 words; of a
# column with fewer than 3 words an item is not.
MOST_QUERIES, LONGEST_QUERY, SHORTEST_FIELD = 500, 25, 3
# Fewer say too little to be worth the time; so a catalog of under 500 items keeps the prior.
FEWEST_QUERIES = 100
# Where a field's words mostly stand in the other fields, too, asking for them tests memory alone.
MOST_OVERLAP = 0.6

Columns = Sequence[Sequence[str]]


def learn_head_weights(
    fields: Columns,
    encoders: Mapping[str, TextEncoder],
    prior: Mapping[str, float],
    epochs: Mapping[str, int | None] = MappingProxyType({}),
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> dict[str, float]:
    """Halfway between the prior weights and those learned from made queries; the prior alone where
    no column can be asked for.

    fields: the text columns, each with one text an item. encoders: the dense heads' encoders.
    prior: a weight for every head, "lexical" included, which add up to 1. epochs: for how many the
    encoders learned from the catalog were trained, where that is known; those learned anew are
    trained for as many. progress: called with the columns done and the columns in all.
    """
    rng = np.random.default_rng(seed)
    heads = list(prior)
    sets = []
    for column in range(len(fields)):
        scores = made_scores(fields, column, encoders, heads, rng, epochs)
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
) -> Scores | None:
    """Every head's scores of sampled items, for a passage of each one's `column`, by what its other
    columns say; None where the column cannot be asked for.

    Encoders learned from the catalog are learned anew without the sampled items: a word that one
    item alone has would give it away. Static keeps its weights, which have counted the sampled
    texts, too: they say how rare a token is, not where it stands.
    """
    analyzer = Analyzer()
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
    queries = [passage(fields[column][i], rng) for i in sample]
    keys = [[texts[i] for i in sample] for texts in others]
    if overlap(queries, keys) >= MOST_OVERLAP:
        return None
    outside = np.setdiff1d(np.arange(len(fields[column])), sample)
    rest = [[texts[i] for i in outside] for texts in fields]

    def scores(head: str) -> np.ndarray:
        if head == "lexical":
            return lexical_scores(lexical_keys(keys), queries)
        encoder = encoders[head]
        if head in LEARNED:
            encoder, _ = learned_encoder(head, rest, epochs.get(head))
        return encoder.encode_many(queries) @ item_keys(encoder.encode_many, keys).T

    return np.stack([standardised(scores(head)) for head in heads])


def passage(text: str, rng: np.random.Generator) -> str:
    """At most 25 words in a row, from anywhere in the text, as they are written there."""
    words = Analyzer().token_spans(text)
    if len(words) <= LONGEST_QUERY:
        return text
    first = rng.integers(len(words) - LONGEST_QUERY + 1)
    return text[words[first][0] : words[first + LONGEST_QUERY - 1][1]]


def overlap(queries: Sequence[str], keys: Columns) -> float:
    """The mean share of a query's terms that its own item's key has."""
    analyzer = Analyzer()
    shares = []
    for query, *texts in zip(queries, *keys, strict=True):
        terms = analyzer.terms(query)
        there = set(analyzer.key_terms(" ".join(texts)))
        shares.append(sum(term in there for term in terms) / max(len(terms), 1))
    return float(np.mean(shares))


def lexical_keys(fields: Columns) -> LexicalKeys:
    """Keys of these items alone."""
    texts = ["\n".join(columns) for columns in zip(*fields, strict=True)]
    return LexicalKeys.from_counts(*count_terms(texts, Analyzer().key_terms))
