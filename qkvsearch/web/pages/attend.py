"""The page on which a sentence attends to itself: heads, lines, maps, and what their mean hides."""

from __future__ import annotations

from typing import Any

from qkvsearch.lessons.messages import say
from qkvsearch.text.pretrained.fetch import MINILM, find
from qkvsearch.web.service import Service

# What there is to see at once, and what it shows: which word, looking at which.
EXAMPLES = (
    {
        "text": "the animal did not cross the street because it was too tired",
        "word": "it",
        "at": "animal",
    },
    {
        "text": "we walked along the bank of the river",
        "word": "bank",
        "at": "river",
        "against": "she opened an account at the bank",
    },
    {
        "text": "deep learning with attention <PAD> <PAD>",
        "word": "attention",
        "at": "learning",
        "mask": "padding",
    },
)


def words() -> dict[str, str]:
    """What its script says, by name."""
    return {
        "attends": say("{word} reads most from {first} ({weight})"),
        "attendsAlso": say(
            "{word} reads most from {first} ({weight}), then from {second} ({more})"
        ),
        "place": say("layer {layer}, head {head}"),
        "placeMean": say("layer {layer}, mean of its {heads} heads"),
        "placeOnly": say("attention without layers and heads"),
        "layerName": say("Layer {layer}"),
        "mean": say("mean"),
        "hidden": say("hidden"),
        "hiddenCount": say("{n} of {all} pairs are hidden by the mask."),
        "hiddenNone": say("This mask hides nothing here: there is no <PAD> in the text."),
        "mapCaption": say("The row's word reads from the column's; a row adds up to 100 %."),
        "mapLarge": say(
            "{n} words are too many for a table of numbers; these are the shades alone."
        ),
        "head": say("Head"),
        "readsMost": say("Reads most from"),
        "weight": say("Weight"),
        "distance": say("Distance from the mean"),
        "spread": say(
            "The mean of {heads} heads has {word} read most from {first} ({weight}). {others} of "
            "the heads read most from another word, and on average {distance} of a head's weight "
            "lies elsewhere than the mean says."
        ),
        "spreadLayer": say("Over all words of layer {layer}, that is {distance}."),
        "shared": say("Word"),
        "course": say("From layer to layer"),
        "before": say("before"),
        "cosineOf": say("{word}: {first} before any attention, {last} after the last layer"),
        "noLayers": say(
            "This encoder has no layers and heads. Its words attend by how alike their vectors "
            "are: softmax(2 · cos) and nothing learned."
        ),
        "size": say("{words} words, {tokens} tokens, {layers} layers of {heads} heads"),
        "sizeOnly": say("{words} words"),
        "failed": say("That did not work: {detail}"),
        "empty": say("Type a sentence."),
        "word": say("from word to word"),
        "headKey": say("the head before, the next head"),
        "layerKey": say("the layer before, the next layer"),
        "best": say("to the head in which {word} reads most from {first}"),
        "went": say("{place}: {word} reads {weight} from {first}, more than in any other head."),
    }


def facts(service: Service) -> dict[str, Any]:
    """The encoders that there are: that of the build, and a transformer where one is installed."""
    main = service.engine.models.main_head
    installed = [MINILM] if find(MINILM) is not None and main != MINILM else []
    # A transformer has more to show, so it is first.
    return {
        "encoders": [*installed, main],
        "examples": EXAMPLES,
    }
