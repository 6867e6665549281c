"""The page `inside`: what the workspace was built from, what it learned, which builds there are."""

from __future__ import annotations

from typing import Any

from qkvsearch.lessons.messages import say
from qkvsearch.web.service import Service


def words() -> dict[str, str]:
    """What its script says, by name."""
    return {**_facts(), **_heads(), **_columns(), **_builds()}


def _facts() -> dict[str, str]:
    return {
        "counts": say("What is there"),
        "items": say("items"),
        "users": say("users"),
        "interactions": say("interactions"),
        "recorded": say("recorded since"),
        "built": say("built"),
        "encoder": say("encoder"),
        "language": say("language"),
        "scale": say("rating scale"),
        "scaleRange": say("{least} to {most}"),
        "nextItem": say("what comes next"),
        "cut": say("cut or left out"),
        "size": say("size"),
        "megabytes": say("{megabytes} MB"),
        "segments": say("segments"),
        "format": say("format"),
        "read": say("What became of the rows"),
    }


def _heads() -> dict[str, str]:
    return {
        "heads": say("Heads and their weights"),
        "headsWhy": say("A search adds up the scores of its heads, each times its weight here."),
        "learnedFrom": say("The weights were learned from {source}."),
        "given": say("The weights are those that an encoder of this kind is given."),
        "keys": say("What the keys of each head are made of"),
        "keysWhy": say("Each text column counts as much as this in an item's vector."),
        "measured": say("How good the answers are"),
        "tuned": say("Settings of the recommender that tune found, by protocol {protocol}:"),
        "untuned": say("The recommender has its default settings. To search for better ones:"),
        "notMeasured": say("A workspace keeps no figures of an evaluation. To measure them:"),
    }


def _columns() -> dict[str, str]:
    return {
        "columns": say("Columns of the items"),
        "logColumns": say("Columns of the interactions"),
        "name": say("column"),
        "role": say("role"),
        "type": say("type"),
        "empty": say("empty"),
        "example": say("example"),
        "changed": say("what was changed, in how many cells"),
        "searched": say("searched"),
        "filters": say("filters"),
        "scrolls": say("{name}, scrolls sideways"),
    }


def _builds() -> dict[str, str]:
    return {
        "builds": say("Builds"),
        "build": say("build"),
        "created": say("made"),
        "command": say("by"),
        "added": say("MB added"),
        "current": say("current"),
        "rollback": say("To go back to one of them:"),
        "shown": say("Everything about {items} items and {heads} heads is shown."),
    }


def facts(service: Service) -> dict[str, Any]:
    """What its script must know at once."""
    return {}
