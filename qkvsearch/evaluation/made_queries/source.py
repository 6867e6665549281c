"""The catalog that queries are made of: its titles, its texts, and which items fit some words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from qkvsearch._utils.caching import cached_property
from qkvsearch.evaluation.made_queries.static_table import LANGUAGES, static_table
from qkvsearch.rank.loaded_build import LoadedBuild
from qkvsearch.tables.catalog_columns import StoredColumn
from qkvsearch.text.analysis import Analyzer, Token
from qkvsearch.text.pretrained.static import StaticEncoder
from qkvsearch.text.related_words import MAX_MEAN_LENGTH

TITLE = "title"
# More items that have all words of a query mean that it asks for none of them.
MAX_ANSWERS = 10
# A column whose texts have fewer words on average describes nothing.
MIN_DESCRIPTION = 12
# So many texts tell how long those of a column are, and so many are read at a time.
N_SAMPLED, BATCH = 500, 256
# Where a sentence ends. Chinese and Japanese have no space behind a full stop. Some exports write
# the end of a line as a backslash and a letter.
SENTENCE_END = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])|(?:[\r\n]|\\[rn])+")
# The syllables of Japanese, and the share of items with them that tells a Japanese catalog.
KANA, MIN_JAPANESE = re.compile("[\u3041-\u3096\u30a1-\u30fa]"), 0.2
# Addresses, and records such as {"name": "x"}, which nobody types into a search.
NO_PROSE = re.compile(r"https?:|www\.|\S@\S|[{}<>]|\"\s*:")


@dataclass(frozen=True)
class QueriedCatalog:
    """A catalog of which queries are made."""

    build: LoadedBuild

    @property
    def n_items(self) -> int:
        return self.build.n_items

    @property
    def analyzer(self) -> Analyzer:
        return self.build.models.analyzer

    @cached_property
    def is_long(self) -> bool:
        """Whether the items' texts are long: more than 50 words on average.

        Queries of their words then find them whatever the heads are worth.
        """
        return self.build.models.words.mean_length > MAX_MEAN_LENGTH

    @cached_property
    def is_japanese(self) -> bool:
        """Whether a good part of the items has Japanese syllables; Chinese texts may quote some."""
        step = max(1, self.n_items // N_SAMPLED)
        rows = self.texts(np.arange(0, self.n_items, step), self.text_columns)
        n_with_kana = sum(bool(KANA.search("".join(row))) for row in rows)
        return n_with_kana > MIN_JAPANESE * len(rows)

    @property
    def table(self) -> StaticEncoder | None:
        """The table of meanings; None where it is not installed, or does not know the catalog's
        language.
        """
        return static_table() if self.is_in_language_of_table else None

    @property
    def is_in_language_of_table(self) -> bool:
        return self.analyzer.language in LANGUAGES

    @cached_property
    def vectors_by_table(self) -> dict[int, np.ndarray]:
        """The vectors of the items that were compared by a table of meanings, (d,), by row."""
        return {}

    # --- titles ---

    @cached_property
    def titles(self) -> Sequence[str]:
        """The title of each item; none where items are titled by their ids, or titles are not
        searched.
        """
        if TITLE not in self.text_columns or self.build.catalog.is_titled_by_id():
            return ()
        return self.build.catalog.names(np.arange(self.n_items))[1]

    def shuffled_titles(self, rng: np.random.Generator) -> Iterator[tuple[int, str]]:
        """Yield row and title of each item in random order."""
        for item in rng.permutation(len(self.titles)).tolist():
            yield item, self.titles[item]

    def titled(self, text: str) -> tuple[int, ...]:
        """Return the items whose title has all words of a text, stop words aside, in order."""
        terms = {token.term for token in self.analyzer.query_tokens(text)}
        items = self.with_terms(terms)
        return tuple(item for item in items if terms <= self.title_terms(item))

    def with_terms(self, terms: set[str]) -> list[int]:
        """Return the items that have all terms anywhere in their texts, in order."""
        if not terms:
            return []
        keys = self.build.models.lexical_keys
        # The rarest first: few items are left to be compared with the others.
        by_term = [keys.postings(term)[0] for term in sorted(terms, key=keys.n_with)]
        items = by_term[0]
        for others in by_term[1:]:
            items = np.intersect1d(items, others, assume_unique=True)
        return [int(item) for item in items]

    def with_words(self, text: str) -> tuple[int, ...]:
        """Return the items that have all words of a text in any column, stop words aside."""
        return tuple(self.with_terms({token.term for token in self.analyzer.query_tokens(text)}))

    def title_terms(self, item: int) -> set[str]:
        """Return the terms of an item's title."""
        return {*self.analyzer.key_terms(self.titles[item])}

    def is_another_title(self, text: str, items: Sequence[int]) -> bool:
        """Return whether a text has all its words in the title of an item besides these."""
        return any(item not in items for item in self.titled(text))

    def is_stop_word(self, word: str) -> bool:
        """Return whether a word says nothing by itself."""
        return all(token.is_stop_word for token in self.analyzer.tokens(word))

    def telling_words(self, text: str) -> list[Token]:
        """Return the words of a text that are neither stop words nor numbers, in order."""
        return [token for token in self.analyzer.meaningful_tokens(text) if not token.is_stop_word]

    def words(self) -> Iterator[str]:
        """Yield the spellings of the catalog's words."""
        for words, _ in self.build.models.words.pieces:
            yield from (spelling.decode() for spelling in words.spellings.tolist())

    # --- other columns ---

    @property
    def text_columns(self) -> list[str]:
        """The columns that are searched."""
        return self.build.texts.item_texts.columns

    @cached_property
    def stored_columns(self) -> dict[str, StoredColumn]:
        """The columns that are searched, by name."""
        columns = self.build.catalog.catalog_columns
        return {name: columns.stored_as(name) for name in self.text_columns}

    @cached_property
    def description(self) -> str | None:
        """The column with the longest prose besides the title; None where all texts are short."""
        lengths = {
            name: self._mean_length(name)
            for name in self.text_columns
            if name != TITLE and self.stored_columns[name].type != "list"
        }
        if not lengths or max(lengths.values()) < MIN_DESCRIPTION:
            return None
        return max(lengths, key=lengths.__getitem__)

    def _mean_length(self, column: str) -> float:
        """Return the mean number of words in the sentences of some of a column's texts, blank ones
        aside.
        """
        step = max(1, self.n_items // N_SAMPLED)
        texts = self.texts(np.arange(0, self.n_items, step), [column])
        lengths = [
            sum(len(self.analyzer.tokens(piece)) for piece in sentences(text))
            for (text,) in texts
            if text.strip()
        ]
        return float(np.mean(lengths)) if lengths else 0.0

    def texts(self, items: Sequence[int] | np.ndarray, columns: Sequence[str]) -> list[list[str]]:
        """Return the searched texts of items in these columns."""
        return self.build.catalog.searched_texts(items, columns)

    def shuffled_texts(
        self, rng: np.random.Generator, columns: Sequence[str]
    ) -> Iterator[tuple[int, list[str]]]:
        """Yield row and texts of each item in random order, read a batch at a time."""
        order = iter(rng.permutation(self.n_items).tolist())
        while batch := list(islice(order, BATCH)):
            yield from zip(batch, self.texts(batch, columns), strict=True)


def sentences(text: str) -> list[str]:
    """Return the sentences of a text, those with addresses or records aside.

    >>> sentences("The sea is deep. Fish swim! 海很深。鱼会游")
    ['The sea is deep.', 'Fish swim!', '海很深。', '鱼会游']
    >>> sentences('Write to us@sea.org today. [{"name": "Eel"}]')
    []
    """
    pieces = map(str.strip, SENTENCE_END.split(text))
    return [piece for piece in pieces if piece and not NO_PROSE.search(piece)]
