"""How a query is looked up: what the heads of a search read of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from qkvsearch._utils.folding import fold
from qkvsearch.heads.answerability import WordStatistics
from qkvsearch.heads.bm25 import QueryTerm
from qkvsearch.heads.codes import QueryCodes
from qkvsearch.text.analysis import Token


class Label(NamedTuple):
    """The name of a word in reasons, and how often the word counts."""

    name: Any
    boost: float


@dataclass(frozen=True)
class UnfinishedWord:
    """The last word of a query while it is typed."""

    # The word that it is read as: itself if the catalog has it, otherwise its likeliest completion.
    word: str
    # Its beginning, as typed.
    prefix: str
    # All words that it may become, the most likely first, with the likelihood of each.
    completions: Sequence[tuple[str, float]]

    @property
    def is_completed(self) -> bool:
        """Whether it is read as another word than was typed so far."""
        return self.word != self.prefix

    @property
    def is_ambiguous(self) -> bool:
        """Whether it is read as one of several words that it may become."""
        return self.is_completed and len(self.completions) > 1

    @property
    def likelihood(self) -> float:
        """How likely, from 0 to 1, it becomes the word that it is read as."""
        return self.completions[0][1]


@dataclass(frozen=True)
class Lookup:
    """How a query is looked up by the heads of a build."""

    # The words of the lexical head, without stop words unless there are no others.
    tokens: Sequence[Token]
    # What the catalog has of these words.
    words: WordStatistics
    # Each of the words with all forms that it is looked up by, and then words of synonyms.
    terms: Sequence[QueryTerm]
    # Whether there are more words of synonyms than are looked up.
    has_more_synonyms: bool
    # The ids and other codes of items in the text. The rest of the text is what encoders read.
    codes: QueryCodes
    # The labels of changed and boosted words, by the folded word.
    labels: Mapping[str, Label]
    # The last word while it is typed, if it may become several words; otherwise None.
    unfinished: UnfinishedWord | None = None

    @property
    def certainty(self) -> float:
        """How likely, from 0 to 1, the user means the words that are read."""
        if self.unfinished is None:
            return 1.0
        return 1 - (1 - self.unfinished.likelihood) / len(self.tokens)

    def label(self, word: Any) -> Label:
        """Return the label of a word of the query; by default the word itself, counted once."""
        return self.labels.get(fold(str(word)), Label(word, 1.0))

    def is_unfinished(self, word: Any) -> bool:
        """Return whether this is the word that an unfinished one is read as."""
        return self.unfinished is not None and fold(str(word)) == self.unfinished.word
