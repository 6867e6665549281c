"""Queries from which a build learns, made of the catalog's own texts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import NamedTuple, TypeAlias

import numpy as np

from qkvsearch.heads.answerability import BestScore
from qkvsearch.heads.bm25 import Expansion, LexicalKeys, ListedKeys, QueryTerm
from qkvsearch.text.analysis import Analyzer, Span, Token, resolve_code
from qkvsearch.text.analyzed import AnalyzedTexts
from qkvsearch.text.related_words import MAX_MEAN_LENGTH, MIN_PREFIX, related_terms
from qkvsearch.text.spelling import word_rarity

# Queries are made for a fifth of the items, and for at most so many.
MAX_QUERIES = 500
# A query is a passage of at most so many words, and of at most half of a text.
MAX_PASSAGE = 25
# A text has at least so many words.
MIN_TEXT = 16
# The passage of a longer text is drawn from so many characters of it.
WINDOW = 4000
# Fewer queries tell too little to be worth the time: none are made for less than 500 items.
MIN_QUERIES = 100
# If most words of a column are in the other columns too, its passages test memory alone.
MAX_OVERLAP = 0.6

TextColumns: TypeAlias = Sequence[Sequence[str]]


class AnsweredQueries(NamedTuple):
    """Queries, the lexical keys of the items that they chose among, and the best score of each head
    for each query, arrays (n_texts,).
    """

    texts: Sequence[str]
    keys: ListedKeys
    best: Mapping[str, BestScore]


def lexical_scores(keys: ListedKeys, texts: Sequence[str], analyzer: Analyzer) -> np.ndarray:
    """Return the BM25 scores of texts, float32 (n_texts, n_items).

    Where the items' texts are short, related words count too. A text of unknown words has zeros.
    """
    scores = np.zeros((len(texts), keys.n_items), dtype=np.float32)
    is_short = keys.n_entries <= MAX_MEAN_LENGTH * keys.n_items

    @cache
    def query_term(token: Token) -> QueryTerm:
        others = keys.vocabulary.with_prefix(token.term[:MIN_PREFIX]) if is_short else []
        related = related_terms(token.term, others).items()
        return QueryTerm.of(token).also(Expansion(other, other, w) for other, w in related)

    for row, text in zip(scores, texts, strict=True):
        tokens = resolve_code(analyzer.query_tokens(text), keys.has)
        head = keys.head([query_term(token) for token in tokens])
        if head is not None:
            row[:] = head.scores
    return scores


# --- made queries ---


class MadeQueries(NamedTuple):
    """Queries made of one column of a catalog, each answered by the item that it was taken from.

    texts: the queries. keys: the columns of these items without the passages. outside: the columns
    of all other items.
    """

    texts: list[str]
    keys: list[AnalyzedTexts]
    outside: list[AnalyzedTexts]


def made_queries(
    fields: TextColumns, rng: np.random.Generator, analyzer: Analyzer
) -> Iterator[MadeQueries]:
    """Make queries of each column that allows it: a passage is taken out of the texts of some
    items, which should be found by their other texts.

    Short texts are left out: nothing of a title would remain, and people use words of the item too.
    fields: the text columns, each with one text for each item.
    """
    for column in range(len(fields)):
        queries = of_column(fields, column, rng, analyzer)
        if queries is not None:
            yield queries


def of_column(
    fields: TextColumns, column: int, rng: np.random.Generator, analyzer: Analyzer
) -> MadeQueries | None:
    """Make queries of a column. Return None if there are too few, or if the other columns repeat
    what the column says.
    """
    columns = AnalyzedTexts.of_columns(fields, analyzer)
    texts = columns[column]
    n_items = len(texts)
    n_queries = min(MAX_QUERIES, n_items // 5)
    shuffled = rng.permutation(n_items)
    is_long = texts.n_tokens[shuffled] >= MIN_TEXT
    sample = np.sort(shuffled[is_long][:n_queries])
    if len(sample) < max(n_queries, MIN_QUERIES):
        return None
    queries, rest = zip(*(passage(texts[i], rng, analyzer) for i in sample), strict=True)
    keys: list[Sequence[str]] = [each.take(sample) for each in columns]
    others = [each for j, each in enumerate(keys) if j != column]
    if overlap(queries, others, analyzer) >= MAX_OVERLAP:
        return None
    keys[column] = rest
    # Each head reads them.
    keys_read_once = AnalyzedTexts.of_columns(map(list, keys), analyzer)
    outside = np.setdiff1d(np.arange(n_items), sample)
    return MadeQueries(list(queries), keys_read_once, [each.take(outside) for each in columns])


def passage(text: str, rng: np.random.Generator, analyzer: Analyzer) -> tuple[str, str]:
    """Return a random passage of half of a text's words, at most 25, and the text without it."""
    words = _some_words(text, rng, analyzer)
    n = min(MAX_PASSAGE, len(words) // 2)
    first = rng.integers(len(words) - n + 1)
    start, end = words[first][0], words[first + n - 1][1]
    return text[start:end], text[:start] + text[end:]


def _some_words(text: str, rng: np.random.Generator, analyzer: Analyzer) -> list[Span]:
    """Return where the words of a text are, or those of a part of a long one."""
    if len(text) > WINDOW:
        start = int(rng.integers(len(text) - WINDOW + 1))
        # The first and the last word may be cut.
        words = analyzer.token_spans(text[start : start + WINDOW])[1:-1]
        if len(words) >= MIN_TEXT:
            return [(start + begin, start + end) for begin, end in words]
    return analyzer.token_spans(text)


def overlap(queries: Sequence[str], keys: TextColumns, analyzer: Analyzer) -> float:
    """Return the mean share of a query's terms that are in these columns of its own item."""
    shares = []
    for i, query in enumerate(queries):
        terms = analyzer.terms(query)
        key_terms = set(analyzer.key_terms(" ".join(texts[i] for texts in keys)))
        shares.append(sum(term in key_terms for term in terms) / max(len(terms), 1))
    return float(np.mean(shares))


def made_lexical_keys(made: MadeQueries, analyzer: Analyzer) -> LexicalKeys:
    """Return the lexical keys of the items of made queries."""
    columns = AnalyzedTexts.of_columns(made.keys, analyzer)
    counted = AnalyzedTexts.joined(columns).key_counts()
    return LexicalKeys.from_counts(*counted, word_rarity(analyzer.language))
