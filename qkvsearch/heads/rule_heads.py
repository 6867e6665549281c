"""What the owner's rules add to scores: boosts of items, and pins of items to a query."""

from __future__ import annotations

from qkvsearch.heads.search_head import SearchHead, by_language


class BoostHead(SearchHead):
    """What boosts add to the items that meet their conditions."""

    name = "boosts"
    titles = by_language(en="Boosts", zh="加权")
    colours = ("#5a7d1a", "#a9cc66")
    reason = "the owner's boost"
    is_of_item = True


class PinHead(SearchHead):
    """What brings the pinned items of a query to the top, and the buried ones to the end."""

    name = "pins"
    titles = by_language(en="Pinned or buried", zh="置顶或置底")
    colours = ("#8c5a9e", "#cfa6dd")
    reason = "the owner's rule"
    is_of_item = True


BOOSTS, PINS = BoostHead(), PinHead()
# Their parts have the name of a rule as the key, which is a line of the reasons as it is.
RULE_HEADS = frozenset((BOOSTS.name, PINS.name))
