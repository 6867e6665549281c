"""A sentence of a description, in other words than the description has."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from qkvsearch.evaluation.made_queries.query_kind import SYNONYMS, MadeQuery, QueryKind
from qkvsearch.evaluation.made_queries.related import RelatedWords
from qkvsearch.evaluation.made_queries.source import MAX_ANSWERS, QueriedCatalog, sentences
from qkvsearch.text.analysis import HAS_UNSPACED

# A shorter sentence is a heading; nobody types a longer one.
MIN_WORDS, MAX_WORDS = 5, 25
# So many of the telling words are replaced.
SHARE = 0.5


class Description(QueryKind):
    name = "description"
    description = "a sentence of a description, half of it in other words"
    claim = "descriptions find their item"

    def make(self, source: QueriedCatalog, rng: np.random.Generator) -> Iterator[MadeQuery]:
        column = source.description
        if column is None:
            return
        related = RelatedWords(source)
        for item, (text,) in source.shuffled_texts(rng, [column]):
            # A text without spaces is not cut into words here.
            pieces = [piece for piece in sentences(text) if not HAS_UNSPACED(piece)]
            if not pieces:
                continue
            sentence = pieces[rng.integers(len(pieces))]
            query = _in_other_words(sentence, source, related, rng)
            if query is None:
                continue
            # A sentence that many items have asks for none of them.
            answers = source.with_words(sentence)
            if item in answers and len(answers) <= MAX_ANSWERS:
                yield MadeQuery(self.name, query, item, answers)

    def carries(self, source: QueriedCatalog) -> frozenset[str]:
        return frozenset([SYNONYMS])


def _in_other_words(
    sentence: str, source: QueriedCatalog, related: RelatedWords, rng: np.random.Generator
) -> str | None:
    """Return a sentence with half of its telling words replaced, or None."""
    tokens, spans = source.analyzer.tokens(sentence), source.analyzer.token_spans(sentence)
    if not MIN_WORDS <= len(tokens) <= MAX_WORDS:
        return None
    telling = [place for place, token in enumerate(tokens) if not token.is_stop_word]
    n_replaced = int(np.ceil(SHARE * len(telling)))
    others: dict[int, str] = {}
    for place in rng.permutation(telling).tolist():
        if len(others) == n_replaced:
            break
        if _is_name(sentence, spans[place], source):
            continue
        other = related.of(tokens[place])
        if other is not None:
            others[place] = other
    if not others or len(others) < n_replaced:
        return None
    words = [others.get(place, sentence[start:end]) for place, (start, end) in enumerate(spans)]
    return " ".join(words).lower()


def _is_name(sentence: str, span: tuple[int, int], source: QueriedCatalog) -> bool:
    """Return whether a word of a sentence is a name or a number, for which no other word stands.

    Names have a capital letter, as all nouns of German and the first word of a sentence.
    """
    start, end = span
    word = sentence[start:end]
    if not word.isalpha():
        return True
    is_capitalized = word[0].isupper() and start > 0
    return is_capitalized and source.analyzer.language != "german"
