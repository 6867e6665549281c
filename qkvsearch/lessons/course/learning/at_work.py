"""Lesson 12, attention at work: "it" in a sentence by a real model, and what its weights show."""

from __future__ import annotations

from typing import Any

import numpy as np

from qkvsearch.errors import QkvError
from qkvsearch.lessons.cells import ran
from qkvsearch.lessons.course.learning import evidence
from qkvsearch.lessons.course.learning.evidence import ANIMAL, TWINS
from qkvsearch.lessons.course.learning.recorded import heads_of, heads_recorded
from qkvsearch.lessons.course.learning.removal import taken_away
from qkvsearch.lessons.drawings import Heads
from qkvsearch.lessons.messages import say
from qkvsearch.lessons.parts import Given, Step, Table, Text, step, tell
from qkvsearch.text.analysis import fold
from qkvsearch.text.encoded_text import EncodedText, focus, is_word
from qkvsearch.text.encoders import pretrained
from qkvsearch.text.languages import stop_words
from qkvsearch.text.pretrained.fetch import find

SENTENCE = ANIMAL.sentences[0]
WORD, TARGET = "it", "animal"
MINILM = "minilm"
# At most this many rows are listed.
MOST = 6


def weights_between(encoder: str, sentence: str, word: str, target: str) -> np.ndarray:
    reading = pretrained(encoder).attend(sentence)
    i, j = reading.position(word), reading.position(target)
    return reading.word_weights()[:, :, i, j]


def steps(given: Given) -> list[Step]:
    """The question to a transformer, with its controls; or to the static table, where there is no
    transformer and the sentence is the reader's own."""
    name, encoder, problem = encoder_for(given)
    sentence = SENTENCE if given.sentence is None else given.sentence
    if encoder is None and given.sentence is None:
        about = {"encoder": MINILM, "sentence": SENTENCE, "word": WORD, "target": TARGET}
        found = {**evidence.recorded(), **about, "is_recorded": True}
        return of_layers(found, problem, heads_recorded(WORD, TARGET))
    if encoder is None:
        return [_nothing_here(problem)]
    reading = encoder.attend(sentence)
    word = word_to_ask(reading)
    at = focus(reading, word, TARGET if given.sentence is None else None)
    about = {"encoder": name, "sentence": sentence, "word": word, "target": at.selected.key}
    if not reading.has_layers:
        return [
            _of_the_table({**about, "words": at.words, "row": at.row}, at.selected.weight, problem)
        ]
    twin = ANIMAL if given.sentence is None and evidence.are_read(encoder) else None
    found = evidence.measured(encoder, sentence, word, at.selected.key, twin)
    drawn = heads_of(reading, reading.position(word), reading.position(at.selected.key))
    return of_layers({**found, **about, "is_recorded": False}, problem, drawn)


def encoder_for(given: Given) -> tuple[str, Any, str]:
    """A name, its encoder or None for no transformer, and why an installed one is not used. The
    static table answers only where it is asked for, or where a sentence is the reader's own.

    Raises `QkvError` where the encoder asked for is not installed; one that was not asked for and
    cannot be read is passed over.
    """
    if given.encoder is not None:
        return given.encoder, pretrained(given.encoder), ""
    problem = ""
    for choice in (MINILM, *(["static"] if given.sentence is not None else [])):
        if find(choice) is None:
            continue
        try:
            return choice, pretrained(choice), problem
        except QkvError as error:
            problem = str(error)
    return "", None, problem


def word_to_ask(reading: EncodedText) -> str:
    """The word to ask about: *it* where it stands there, else the last that says something."""
    words = [word for word in reading.words if is_word(word)]
    if not words:
        raise QkvError("`sentence` has no words to attend to one another: give it two or more")
    if WORD in map(fold, words):
        return words[[fold(word) for word in words].index(WORD)]
    return ([word for word in words if fold(word) not in stop_words()] or words)[-1]


# --- without a transformer ---


def _nothing_here(problem: str) -> Step:
    return step(
        "A real transformer at work",
        tell(
            "No pretrained model is installed here that could read a sentence of your own. "
            "`qkvsearch model fetch minilm` brings a transformer of six layers, and `pip install "
            "'qkvsearch[encoders]'` what reads it. Without a sentence of your own, this lesson "
            "shows what was recorded of it."
        ),
        *_reason(problem),
        heads_recorded(WORD, TARGET),
        points=(14,),
        found={"encoder": ""},
    )


def _reason(problem: str) -> list[Text]:
    return [tell("One is here but cannot be read: {problem}", problem=problem)] if problem else []


def _of_the_table(found: dict[str, Any], weight: float, problem: str) -> Step:
    """What attention without weights makes of vectors that know no sentence."""
    order = np.argsort(-found["row"], kind="stable")[:MOST]
    return step(
        "A real transformer at work",
        tell('What does "{word}" attend to in "{sentence}"?', **found),
        *_reason(problem),
        tell(
            "This is no transformer but the *static* table: one vector a word, learned from "
            "texts, the same in every sentence. Attention over it has no weight matrices of its "
            'own, so words attend to words of similar meaning. The weight from "{word}" to '
            '"{target}" is {weight}.',
            weight=weight,
            **found,
        ),
        tell(
            "`qkvsearch model fetch minilm` brings a transformer, whose layers and heads were "
            "learned; then this step shows what they attend to."
        ),
        Table(
            say('What "{word}" attends to most', **found),
            [say("word"), say("weight")],
            [[found["words"][j], float(found["row"][j])] for j in order],
        ),
        points=(14,),
        found={**found, "weight": weight},
    )


# --- a transformer ---


def of_layers(found: dict[str, Any], problem: str, drawn: Heads) -> list[Step]:
    """The strongest weight, the head that singles the word out, and what weights do."""
    return [
        _strongest(found, problem, drawn),
        _singled_out(found),
        *([_by_meaning(found)] if "turns" in found else []),
        taken_away(found),
    ]


def _strongest(found: dict[str, Any], problem: str, drawn: Heads) -> Step:
    heads, others, place = found["heads"], found["others"], found["strongest"]
    layer, head = place
    asked = {name: found[name] for name in ("encoder", "sentence", "word", "target")}
    cell = None if found["is_recorded"] else ran(weights_between, **asked)[0]
    columns = [say("layer"), say("head"), say('weight of "{word}"', **found), say("of the others")]
    best = [(n, int(row.argmax())) for n, row in enumerate(heads)]
    rows: list[list[str | float]] = [
        [n, j, float(heads[n, j]), float(others[n, j])] for n, j in best
    ]
    if "swapped" in found:
        columns.append(say("too “{ending}”", ending=ANIMAL.endings[1]))
        rows = [[*row, float(found["swapped"][0][at])] for row, at in zip(rows, best, strict=True)]
    order = np.argsort(-found["row"], kind="stable")[:MOST]
    return step(
        "A real transformer at work",
        tell('What does "{word}" attend to in "{sentence}"?', **found),
        *_reason(problem),
        tell(
            "This is {encoder}, a transformer of {n_layers} layers, in each {n_heads} heads, "
            "learned from texts. Both are counted from 0, as programs do: the last of the "
            "{n_layers} layers is layer {last}. [CLS] and [SEP] are signs that it puts at both "
            "ends of a text.",
            n_layers=len(heads),
            last=len(heads) - 1,
            n_heads=heads.shape[1],
            **found,
        ),
        *_recording(found),
        tell(
            'Layer {layer}, head {head} gives the largest weight from "{word}" to "{target}", '
            "{weight}. That looks like an answer. But one number alone shows nothing: compare it "
            "with what it would be if the answer were wrong. Such a number is called a *control*.",
            head=head,
            layer=layer,
            weight=heads[place],
            word=found["word"],
            target=found["target"],
        ),
        Table(
            say('What "{word}" attends to most', **found),
            [say("word"), say("weight")],
            [[found["words"][j], float(found["row"][j])] for j in order],
        ),
        tell(
            "The first control is the other words: in the same head they give “{target}” {others} "
            "on average, and {most} of the {n} tokens, [CLS] and [SEP] among them, attend to it "
            "most of all. A weight that most words give says little about the one that we asked "
            "about.",
            target=found["target"],
            others=others[place],
            most=int(found["most"][place]),
            n=len(found["words"]),
        ),
        *_other_ending(found),
        Table(
            say('From "{word}" to "{target}": each layer\'s strongest head', **found),
            columns,
            rows,
        ),
        drawn,
        points=(14,),
        found={**found, "layer": layer, "head": head, "weight": float(heads[place])},
        code=cell,
    )


def _recording(found: dict[str, Any]) -> list[Text]:
    if not found["is_recorded"]:
        return []
    return [
        tell(
            "It is not installed here: these are numbers that it gave once, by a script of this "
            "program. With `qkvsearch model fetch minilm` they are computed as you read, and "
            "`--sentence` takes one of your own."
        )
    ]


def _other_ending(found: dict[str, Any]) -> list[Text]:
    """The same head, where the word means the other noun."""
    if "swapped" not in found:
        return []
    place, (to_target, to_rival) = found["strongest"], found["swapped"]
    return [
        tell(
            "The second control is a sentence in which the answer is another one: where the "
            "street is “too {ending}”, the same head still gives “{target}” {weight}, and "
            "“{rival}” {other}. So this weight is not what finds out the meaning of “{word}”.",
            ending=ANIMAL.endings[1],
            rival=ANIMAL.nouns[1],
            weight=to_target[place],
            other=to_rival[place],
            word=found["word"],
            target=found["target"],
        )
    ]


def _singled_out(found: dict[str, Any]) -> Step:
    heads, others, place = found["heads"], found["others"], found["singled"]
    before, after = found["cosines"]
    here, there = (found["words"].index(found[name]) for name in ("word", "target"))
    own = [i for i, name in enumerate(found["words"]) if i != here and is_word(name)]
    order = sorted(own, key=lambda i: -after[i])
    return step(
        "With controls: a head, and a cosine",
        tell(
            "Look for the head in which “{word}” gives “{target}” much more than the other words "
            "do. It is layer {layer}, head {head}: {weight}, where the others give {others} on "
            "average. Here the weight does say something about “{word}”.",
            head=place[1],
            layer=place[0],
            weight=heads[place],
            others=others[place],
            word=found["word"],
            target=found["target"],
        ),
        tell(
            "Nearness needs a control as well. The cosine of the two words' vectors was {first} "
            "before any layer and is {last} after the last one. But words of one sentence come "
            "nearer to each other altogether: for “{word}” and the others the mean cosine went "
            "from {mean_first} to {mean_last}.",
            first=before[there],
            last=after[there],
            mean_first=np.mean([before[i] for i in own if i != there]),
            mean_last=np.mean([after[i] for i in own if i != there]),
            word=found["word"],
        ),
        Table(
            say('Cosine of "{word}" with', **found),
            [say("word"), say("before any layer"), say("after the last")],
            [
                [found["words"][i], float(before[i]), float(after[i])]
                for i in dict.fromkeys([*order[:MOST], there])
            ],
        ),
        points=(14, 15),
        found={**found, "own": own},
    )


def _by_meaning(found: dict[str, Any]) -> Step:
    """The head that was singled out, on sentences of two endings."""
    turned = right_turns(found["turns"])
    rows: list[list[str | float]] = []
    for twin, weights, is_right in zip(TWINS, found["turns"], turned, strict=True):
        for ending, (first, second) in zip(twin.endings, weights, strict=True):
            short = f"{twin.nouns[0]} / {twin.nouns[1]}"
            rows.append([short, ending, float(first), float(second), _turned(is_right)])
    (layer, head), first = found["singled"], found["turns"][0]
    return step(
        "Does that head know what is meant?",
        tell(
            "In that head (layer {layer}, head {head}), “too {ending}” takes the weight from "
            "“{it}” to “{first}” from {before} down to {after}, and raises that to “{second}” from "
            "{other_before} to {other_after}. As it should be! But the head was chosen by this "
            "sentence, out of {n}. A fair test takes sentences that had no part in the choice.",
            head=head,
            layer=layer,
            ending=ANIMAL.endings[1],
            it=WORD,
            first=ANIMAL.nouns[0],
            second=ANIMAL.nouns[1],
            before=first[0, 0],
            after=first[1, 0],
            other_before=first[0, 1],
            other_after=first[1, 1],
            n=found["heads"].size,
        ),
        tell(
            "Here are {n} others. Each begins in the same way twice, and its last word decides "
            "what “it” is. “Turned right” means: the last word moved the difference between the "
            "two weights towards the noun that is meant, even where the other one keeps the "
            "larger weight. The head does so in {right} of the {n}; a coin would in half of them. "
            "That the head tells which noun is meant, these numbers do not show; that it did so "
            "in one sentence may have been luck, or a habit that fitted.",
            n=len(turned) - 1,
            right=int(turned[1:].sum()),
        ),
        Table(
            say("Weights of “it” in that head, to the first and to the second noun"),
            [say("nouns"), say("last word"), say("first"), say("second"), say("turned right")],
            rows,
        ),
        points=(14,),
        found={"turns": found["turns"], "turned": turned},
    )


def right_turns(weights: np.ndarray) -> np.ndarray:
    """Whether the first ending draws more to the first noun than the second ending does, compared
    with the second noun: (n, 2, 2) -> bool (n,).

    >>> right_turns(np.array([[[0.6, 0.1], [0.3, 0.2]], [[0.3, 0.1], [0.5, 0.1]]]))
    array([ True, False])
    """
    lead = weights[:, :, 0] - weights[:, :, 1]
    return lead[:, 0] > lead[:, 1]


def _turned(is_right: bool) -> str:
    return say("yes") if is_right else say("no")
