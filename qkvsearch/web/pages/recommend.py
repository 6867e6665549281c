"""The page that recommends: for a visitor's likes, or for a user of the log."""

from __future__ import annotations

from typing import Any

from qkvsearch.lessons.messages import say
from qkvsearch.web.service import Service

# As many as the API takes at once; to import its models would keep the pages waiting.
MAX_RECORDED = 100


def words() -> dict[str, str]:
    """What its scripts say, by name."""
    return {**_of_items(), **_of_reasons(), **_of_changes(), **_of_recording()}


def _of_items() -> dict[str, str]:
    return {
        "pickCount": say("{n} suggestions"),
        "pickNone": say("No suggestion"),
        "like": say("like"),
        "dislike": say("dislike"),
        "rate": say("rate"),
        "remove": say("remove"),
        "liked": say("liked"),
        "disliked": say("disliked: not in the list"),
        "rated": say("you rate it {rating}"),
        "ratedThen": say("rated {rating}"),
        "weighed": say("weight {weight}"),
        "countsNothing": say("counts nothing"),
        "removed": say("taken back"),
        "actOn": say("{act}: {title}"),
        "did": say("{title}: {act}."),
        "notHere": say("is not in the catalog; the list does without it"),
        "historyOf": say("What this user met:"),
        "historyShown": say("The latest {n} of {total}."),
        "metCount": say("met {n}"),
        "mostMet": say("What most people met here"),
        "firstOnes": say("What is here, the first of it"),
        "nobody": say("Nothing is chosen yet."),
        "scaleIs": say(
            "Ratings go from {least} to {most}. A dislike is the lowest; it says nothing against "
            "others that are alike."
        ),
        "unrated": say("Nothing is rated here: a dislike leaves an item out of the list, no more."),
        "outside": say("Ratings go from {least} to {most}."),
        "helpLike": say("like the item that you are on"),
        "helpDislike": say("dislike it"),
        "helpRate": say("rate it"),
        "helpRemove": say("take back what you said of it, or do without it"),
        "recentOff": say("all count alike"),
        "recentEvery": say("half for every {n} later ones"),
    }


def _of_reasons() -> dict[str, str]:
    return {
        "score": say("score"),
        "because": say("because of"),
        "predicted": say("would be rated {rating}"),
        "cold": say("nobody met it before"),
        "leaveOut": say("What if this had never been met? Press to see the list without it."),
        "bringBack": say("Press to bring it back."),
        "partOthers": say("{n} others together"),
        "partDamping": say("damping"),
        "partDiversity": say("diversity"),
        "partConstant": say("whatever the history is"),
        "inWords": say("In words"),
        "allParts": say("All {n} parts of the score"),
        "addsUp": say("The {n} parts add up to {sum}: that is the score."),
        "addsNot": say("The {n} parts add up to {sum}, but the score is {score}."),
        "hitCount": say("{n} recommendations."),
        "noHits": say("Nothing can be recommended from this: what is left says nothing."),
    }


def _of_changes() -> dict[str, str]:
    return {
        "new": say("new"),
        "newCount": say("{n} new."),
        "changes": say("{rose} rose, {fell} fell, {came} came, {went} went."),
        "came": say("came"),
        "cameFrom": say("came from place {rank}"),
        "cameItself": say("what you left out"),
        "scoreBy": say("score changed by {change}"),
        "wentTo": say("from place {before} to {now}, score {change}"),
        "wentAway": say("from place {before}, now not among the first {n}"),
        "leftOut": say("left out"),
        "broughtBack": say("brought back"),
    }


def _of_recording() -> dict[str, str]:
    return {
        "recordIt": say("Record it for this user"),
        "recordAsk": say("Record {n} for good?"),
        "recordFor": say("For the user"),
        "recordStays": say(
            "It is written into the workspace: everyone's server and command line knows it from "
            "then on, and `learn` makes it a part of the model. Only `undo` takes it back."
        ),
        "recordYes": say("Record"),
        "recorded": say("{n} recorded."),
        "cancel": say("Cancel"),
    }


def facts(service: Service) -> dict[str, Any]:
    """How much may be asked for and recorded at once."""
    return {"most": service.settings.hits, "batch": MAX_RECORDED}
