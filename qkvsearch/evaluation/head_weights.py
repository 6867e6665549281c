"""How much each head should count on this catalogue, learned from queries made of its own texts.

A column of some items is taken away and its words are asked for; what is left of those items should
be found. Queries that someone judged say more: `judged_weights` learns from those.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from qkvsearch.embeddings.encoders import LEARNED, Encoder, fitted_encoder, item_keys
from qkvsearch.embeddings.text import Analyzer
from qkvsearch.embeddings.vocabulary import count_terms
from qkvsearch.evaluation.conditional_logit import (
    Alternatives,
    Scores,
    conditional_logit,
    standardised,
)

# A fifth of the items, at most so many, are asked for, each by a passage of at most so many words.
MOST_QUERIES, LONGEST_QUERY, SHORTEST_FIELD = 500, 25, 3
# Fewer say too little to be worth the time; so a catalogue of under 500 items keeps the prior.
FEWEST_QUERIES = 100
# Where a field's words mostly stand in the other fields, too, asking for them tests memory alone.
MOST_OVERLAP = 0.6

Columns = Sequence[Sequence[str]]


def learn_head_weights(
    fields: Columns, encoders: Mapping[str, Encoder], prior: Mapping[str, float], seed: int = 0
) -> dict[str, float]:
    """Halfway between the prior weights and those learned from made queries; the prior alone where
    no column can be asked for.

    fields: the text columns, each with one text an item. encoders: the dense heads' encoders.
    prior: a weight for every head, "lexical" included, which add up to 1.
    """
    rng = np.random.default_rng(seed)
    heads = list(prior)
    made = [made_scores(fields, column, encoders, heads, rng) for column in range(len(fields))]
    sets = [scores for scores in made if scores is not None]
    if not sets:
        return dict(prior)
    learned = conditional_logit([Alternatives.each_its_own(scores) for scores in sets])
    return {name: (prior[name] + float(w)) / 2 for name, w in zip(prior, learned, strict=True)}


def made_scores(
    fields: Columns,
    column: int,
    encoders: Mapping[str, Encoder],
    heads: Sequence[str],
    rng: np.random.Generator,
) -> Scores | None:
    """Every head's scores of sampled items, for a passage of each one's `column`, by what its other
    columns say; None where the column cannot be asked for.

    Encoders learned from the catalogue are learned anew without the sampled items: a word that one
    item alone has would give it away.
    """
    others = [texts for j, texts in enumerate(fields) if j != column]
    asked = [
        i
        for i, text in enumerate(fields[column])
        if len(text.split()) >= SHORTEST_FIELD and any(texts[i].strip() for texts in others)
    ]
    n_queries = min(len(asked), MOST_QUERIES, len(fields[column]) // 5)
    if n_queries < FEWEST_QUERIES:
        return None
    sample = np.sort(rng.choice(asked, n_queries, replace=False))
    queries = [passage(fields[column][i], rng) for i in sample]
    keys = [[texts[i] for i in sample] for texts in others]
    if overlap(queries, keys) >= MOST_OVERLAP:
        return None
    outside = np.setdiff1d(np.arange(len(fields[column])), sample)
    rest = [[texts[i] for i in outside] for texts in fields]

    def scores(head: str) -> np.ndarray:
        if head == "lexical":
            return lexical_scores(queries, keys)
        encoder = fitted_encoder(head, rest) if head in LEARNED else encoders[head]
        return encoder.encode_many(queries) @ item_keys(encoder.encode_many, keys).T

    return np.stack([standardised(scores(head)) for head in heads])


def passage(text: str, rng: np.random.Generator) -> str:
    """At most 25 words in a row, from anywhere in the text."""
    words = text.split()
    start = rng.integers(max(1, len(words) - LONGEST_QUERY + 1))
    return " ".join(words[start : start + LONGEST_QUERY])


def overlap(queries: Sequence[str], keys: Columns) -> float:
    """The mean share of a query's terms that its own item's key has."""
    analyzer = Analyzer()
    shares = []
    for query, *texts in zip(queries, *keys, strict=True):
        terms = analyzer.terms(query)
        there = set(analyzer.key_terms(" ".join(texts)))
        shares.append(sum(term in there for term in terms) / max(len(terms), 1))
    return float(np.mean(shares))


def lexical_scores(queries: Sequence[str], keys: Columns) -> np.ndarray:
    """BM25 (queries, items) among these items alone."""
    from qkvsearch.retrieval.keys import LexicalKeys

    texts = ["\n".join(fields) for fields in zip(*keys, strict=True)]
    index = LexicalKeys.from_counts(*count_terms(texts, Analyzer().key_terms))
    analyzer = Analyzer()
    found = [index.head(analyzer.query_tokens(query)) for query in queries]
    return np.stack([np.zeros(len(texts)) if head is None else head.scores for head in found])
