"""The page with the items in two dimensions."""

from __future__ import annotations

from typing import Any

from qkvsearch.lessons.messages import say
from qkvsearch.web.service import Service


def words() -> dict[str, str]:
    """What its script says, by name."""
    return {
        "explained": say(
            "{n} items. These two axes keep {share} of what the vectors of the head {head} say: "
            "what lies apart differs, but what lies close together need not be alike."
        ),
        "noColour": say("no colour"),
        "byColumn": say("by {column}"),
        "other": say("other, or none"),
        "legendValues": say("Of an item with several values the most frequent one counts."),
        "legendRanges": say("Each shade has about as many items."),
        "canvas": say(
            "Map of {n} items. Arrow keys move it, plus and minus change its size, Enter chooses "
            "the item in the middle."
        ),
        "middle": say("Nearest to the middle of the map"),
        "nearQuery": say("Best by the head {head} for “{query}”"),
        "nearUser": say("Best by the head {head} for the user {user}"),
        "nearItem": say("Like “{title}”, by all heads together"),
        "title": say("Title"),
        "weight": say("Weight"),
        "distance": say("Distance on the map"),
        "queryHere": say("the query"),
        "userHere": say("the user"),
        "placed": say("{who}: {n} lines, the heaviest to {title}"),
        "nothing": say("Nothing of it is known, so it has no place."),
        "linesSaid": say(
            "A line is as thick as its weight beside the first one's. Weights are a softmax over "
            "all items by this head alone; the search page adds up all heads."
        ),
        "itemSaid": say(
            "These are its neighbours in all dimensions. Where a line is long, the two axes have "
            "lost what makes the items alike."
        ),
        "notDrawn": say("not on the map"),
        "pan": say("move the map, when it has the focus"),
        "zoom": say("larger, smaller, all of it"),
        "pick": say("choose the item in the middle, or undo that"),
    }


def facts(service: Service) -> dict[str, Any]:
    """What its script must know at once."""
    return {"users": bool(service.engine.snapshot.facts.get("n_users"))}
