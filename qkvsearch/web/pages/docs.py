"""The page `docs`: every question of the API, to be tried; made of /openapi.json."""

from __future__ import annotations

from typing import Any

from qkvsearch.lessons.messages import say
from qkvsearch.web.service import Service


def words() -> dict[str, str]:
    """What its script says, by name."""
    return {
        "run": say("Run"),
        "running": say("Running…"),
        "parameters": say("Parameters"),
        "none": say("It has no parameters."),
        "body": say("What is sent, as JSON"),
        "notJson": say("This is not JSON: {detail}"),
        "required": say("required"),
        "defaults": say("by default {value}"),
        "atLeast": say("at least {limit}"),
        "atMost": say("at most {limit}"),
        "above": say("above {limit}"),
        "characters": say("up to {limit} characters"),
        "entries": say("up to {limit}, one a line"),
        "oneALine": say("one a line"),
        "fields": say("Fields of the answer"),
        "field": say("field"),
        "meaning": say("meaning"),
        "type": say("type"),
        "asCurl": say("As curl"),
        "answer": say("Answer"),
        "told": say("{status} {phrase}, {milliseconds} ms, {bytes} bytes"),
        "whole": say("All {lines} lines"),
        "longer": say("The first {shown} of {lines} lines are shown; curl gives them all."),
        "changes": say("changes the workspace"),
        "sure": say("This changes the workspace: {method} {path}. Go on?"),
        "readOnly": say("This server is read-only: what changes the workspace is not there."),
        "helpAsked": say("from one question to the next"),
        "shown": say("{n} questions."),
    }


def facts(service: Service) -> dict[str, Any]:
    """What its script must know at once."""
    return {"hasToken": service.token is not None}
