"""A bonus for items whose whole title is the query: whoever types a title means that item."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from qkvsearch.heads.first_head import FirstHead, QueryWording
from qkvsearch.heads.search_head import Asked, by_language
from qkvsearch.heads.stored_models import StoredModels
from qkvsearch.text.analysis import Token

# More words are no half of a title.
MAX_HALF = 12


class TitleHead(FirstHead):
    """The items with this title. It is added to other heads, which rank items of one title."""

    name = "title"
    titles = by_language(en="Same title", zh="相同的标题")
    reason = "it has this title"
    # More than the second pass gives.
    lead = 5.0

    def items(self, asked: Asked, wording: QueryWording) -> np.ndarray | None:
        """Return the items with this title, bool (n_items,); None where there are none.

        Letters, case, accents and blanks are compared as the index of words has them.
        """
        models = asked.models
        if not has_titles(models):
            return None
        rows = titled(models, models.analyzer.tokens(wording.title), is_whole=True)
        if asked.mask is not None:
            rows = rows[asked.mask[rows]]
        if not len(rows):
            return None
        items = np.zeros(models.n_items, dtype=bool)
        items[rows] = True
        return items


TITLE = TitleHead()


def has_titles(models: StoredModels) -> bool:
    """Return whether the first column of the searched texts has the titles."""
    searched: Sequence[str] = models.snapshot.facts["text_columns"]
    return searched[:1] == ["title"]


def titled(models: StoredModels, words: Sequence[Token], is_whole: bool) -> np.ndarray:
    """Return the items whose title begins with these words, ascending rows. Only if `has_titles`.

    is_whole: whether the title must have no others.
    """
    if not words:
        return np.zeros(0, np.int64)
    keys = models.lexical_keys
    # Only the items with the rarest word are compared.
    rarest = min((word.term for word in words), key=keys.n_with)
    items, _ = keys.postings(rarest)
    if not len(items):
        return np.zeros(0, np.int64)
    spellings = [word.text for word in words]
    return models.words.items_starting_with(spellings, items.astype(np.int64), is_whole)


def half_titled(models: StoredModels, tokens: Sequence[Token]) -> np.ndarray | None:
    """Return the items of which a query has half the title, bool (n_items,); None without any.

    It breaks off: its last word only joins others, as in "silence of the", or no item has it beside
    the words before, as in "pulp fic" and "dr strange". The titles may lack an article that the
    query begins with. tokens: all words in order, with stop words.
    """
    names = [i for i, token in enumerate(tokens) if not token.is_stop_word]
    if not 1 < len(tokens) <= MAX_HALF or not names or not has_titles(models):
        return None
    if not tokens[-1].is_stop_word and _any_has_all(models, [tokens[i].term for i in names]):
        return None
    for start in dict.fromkeys((0, names[0])):
        begun = models.words.items_with_prefix([token.text for token in tokens[start:]])
        if begun.any():
            return begun
    return None


def _any_has_all(models: StoredModels, terms: Sequence[str]) -> bool:
    """Return whether any item has all of the words."""
    postings = sorted((models.lexical_keys.postings(term)[0] for term in set(terms)), key=len)
    rows = postings[0]
    for others in postings[1:]:
        if not len(rows):
            return False
        # The rows of a common word are not gone through for a few of a rare one.
        rows = rows[others.take(others.searchsorted(rows), mode="clip") == rows]
    return bool(len(rows))
