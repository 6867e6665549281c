"""The collaborative head of a search: what a user prefers, beside the heads of the text."""

from __future__ import annotations

from qkvsearch.heads.search_head import SearchHead, by_language
from qkvsearch.heads.stored_models import StoredModels
from qkvsearch.scores.fusion import Scores


class TasteHead(SearchHead):
    """A user's preferences. They count only where a head of the text knows the query."""

    name = "collaborative"
    titles = by_language(en="Taste", zh="喜好")
    colours = ("#a8327f", "#ee8fcb")
    reason = "your taste"
    # Its weight beside the heads of the text, whose weights add up to 1.
    # benchmarks/defaults/personal_search.py: tags that people gave to films, first half of users.
    weight = 0.3

    def is_in(self, models: StoredModels, has_user: bool) -> bool:
        return has_user

    def scores(self, preferences: Scores) -> Scores:
        """Return the preferences of a user, whatever models they are of, under one name."""
        return preferences.renamed(self.name)


TASTE = TasteHead()
