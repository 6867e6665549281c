"""The page `search`: what is there, what a query finds, and why."""

from __future__ import annotations

from typing import Any

from qkvsearch.lessons.messages import say
from qkvsearch.web.service import Service


def facts(service: Service) -> dict[str, Any]:
    """What its script must know at once."""
    return {"most": service.settings.hits}


def words() -> dict[str, str]:
    """What its script says, by name."""
    return _of_lists() | _of_filters() | _of_reasons() | _of_heads()


def _of_lists() -> dict[str, str]:
    return {
        "there": say("{total} items are here; {n} are shown"),
        "thereFiltered": say("{total} items fit; {n} are shown"),
        "results": say("{n} results"),
        "resultsOfMore": say("The first {n} results"),
        "neighbours": say("{n} neighbours are shown"),
        "none": say("Nothing was found."),
        "nearest": say("Show the nearest all the same"),
        "noneHere": say("No item fits these filters."),
        "likeTitle": say("Similar to “{title}”"),
        "more": say("More"),
        "searchedFor": say("No item has “{typed}”: searched for “{read}”."),
        "unfinished": say(
            "“{typed}” was read as the beginning of “{read}”. Enter searches for it whole."
        ),
        "similar": say("Similar"),
        "similarTo": say("Items similar to {title}"),
        "met": say("Most met"),
        "newest": say("Newest"),
        "byId": say("By id"),
        "changed": say("The catalog has changed meanwhile; the results were asked for again."),
    }


def _of_filters() -> dict[str, str]:
    return {
        "clear": say("Clear all filters"),
        "drop": say("{filter}, a filter: take it away"),
        "fewer": say("Fewer"),
        "allOf": say("All {n}"),
        "mostFrequent": say("The {n} most frequent values are listed."),
        "yes": say("yes"),
        "no": say("no"),
        "noUser": say("No user’s id begins so."),
        "moreUsers": say("{n} of {total} users are suggested; go on typing."),
    }


def _of_reasons() -> dict[str, str]:
    return {
        "reasons": say("In plain words"),
        "sum": say("adds up to {score}"),
        "map": say("Word by word"),
        "mapSays": say(
            "What each pair of words adds to the score: the query’s words across, the item’s down."
        ),
        "mapOf": say("Show"),
        "allHeads": say("all heads"),
        "query": say("query"),
        "item": say("item"),
        "total": say("sum"),
        "otherWords": say("{n} other words"),
        "constant": say("every item gets"),
        "constantSays": say(
            "Each head counts from the mean item, so the same number is taken off every item."
        ),
        "otherReasons": say("not of single words"),
        "score": say("score"),
        "byHead": say("By head"),
        "noWords": say("No word of the query meets a word of the item here."),
        "added": say("The texts as wholes are [CLS] and [SEP], which the encoder adds."),
        "explained": say("Reasons are open: {title}, {score}"),
        "closed": say("Reasons are closed."),
    }


def _of_heads() -> dict[str, str]:
    """Heads by what they compare; `headMeaning` for every encoder, by its name."""
    return {
        "headAll": say("All together"),
        "head_lexical": say("same words"),
        "head_token": say("word by word"),
        "head_collaborative": say("taste"),
        "head_beginning": say("begins as typed"),
        "head_semantic": say("meaning"),
        "headMeaning": say("meaning ({name})"),
        "weight": say("{share} of the weight"),
        "tiny": say("under {share}"),
        "barSays": say("Score {score}: {parts}"),
        # What reasons are made of, as the engine writes them.
        "r_same word": say("same word"),
        "r_word by word": say("word by word"),
        "r_meaning": say("meaning"),
        "r_your taste": say("your taste"),
        "r_it begins as typed": say("it begins as typed"),
        "r_everything gets": say("everything gets"),
        "r_the text as a whole": say("the text as a whole"),
        "r_smaller ones": say("{n} smaller ones"),
    }
