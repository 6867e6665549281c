"""Lesson 10, attention at work: "it" in a sentence, by vectors made by hand and by a real model."""

from typing import Any

import numpy as np

from qkvsearch.attention import attention
from qkvsearch.errors import QkvError
from qkvsearch.lessons.cells import ran
from qkvsearch.lessons.course.context.outputs import ANIMAL, meanings
from qkvsearch.lessons.course.learning.recorded import heads_of, heads_recorded
from qkvsearch.lessons.drawings import AttendedText, Heads
from qkvsearch.lessons.messages import say
from qkvsearch.lessons.parts import Given, Step, Table, Text, step, tell
from qkvsearch.texts.analysis import fold
from qkvsearch.texts.encoded_text import EncodedText, focus, is_word
from qkvsearch.texts.encoders import pretrained
from qkvsearch.texts.language.stop_words import STOP_WORDS
from qkvsearch.texts.pretrained.fetch import find

SENTENCE = " ".join(ANIMAL)
WORD, TARGET = "it", "animal"
# At most this many weights are listed.
MOST = 6


def weights_of(X: np.ndarray, words: list[str], word: str) -> np.ndarray:
    _, weights = attention(X, X, X, return_weights=True)
    return weights[words.index(word)]


def by_hand(x: np.ndarray | None = None) -> Step:
    """What *it* attends to, by the vectors made by hand of the lesson before."""
    x = meanings() if x is None else x
    cell, weights = ran(weights_of, X=x, words=ANIMAL, word=WORD)
    order = np.argsort(-weights, kind="stable")
    top = [ANIMAL[j] for j in order]
    return step(
        "What does it attend to?",
        tell(
            'Take "{sentence}". What is "it"? By the vectors that were made by hand, "it" '
            'attends most to "{first}", "{second}" and "{third}": to itself and to the two '
            "things that it could be.",
            sentence=SENTENCE,
            first=top[0],
            second=top[1],
            third=top[2],
        ),
        Table(
            say('Weights of "it", made by hand'),
            [say("word"), say("weight")],
            [[top[k], float(weights[order[k]])] for k in range(MOST)],
        ),
        Heads(
            "hand",
            say("Every word of the sentence, by the vectors made by hand: point at one"),
            (AttendedText(ANIMAL, attention(x, x, x, return_weights=True)[1][None, None]),),
            word=ANIMAL.index(WORD),
        ),
        points=(14,),
        found={"top": top, "weights": weights},
        code=cell,
    )


# --- what is installed ---


def weights_between(encoder: str, sentence: str, word: str, target: str) -> np.ndarray:
    reading = pretrained(encoder).attend(sentence)
    i, j = reading.position(word), reading.position(target)
    return reading.word_weights()[:, :, i, j]


def real(given: Given) -> Step:
    """The same question to an encoder: the one that is given, or the best that is installed."""
    name, encoder, problem = encoder_for(given.encoder)
    if encoder is None:
        return _nothing_here(problem)
    sentence = SENTENCE if given.sentence is None else given.sentence
    reading = encoder.attend(sentence)
    word = word_to_ask(reading)
    target = TARGET if given.sentence is None else None
    at = focus(reading, word, target)
    places = [reading.position(word), reading.position(at.shown.key)]
    asked = {"encoder": name, "sentence": sentence, "word": word, "target": at.shown.key}
    cell, value = ran(weights_between, **asked)
    vectors = reading.word_vectors()[:, places]
    lengths = np.linalg.norm(vectors, axis=2).prod(axis=1)
    cosines = vectors.prod(axis=1).sum(axis=1) / np.where(lengths > 0, lengths, 1)
    found = {
        **asked,
        "heads": value,
        "cosines": cosines,
        "row": at.row,
        "words": at.words,
        "layer": at.shown.layer,
        "head": at.shown.head,
        "weight": at.shown.weight,
    }
    explained = _of_layers(found) if reading.has_layers else _of_the_table(found, problem)
    return step(
        "A real transformer at work",
        tell('What does "{word}" attend to in "{sentence}"?', **asked),
        *explained,
        _largest(found),
        _drawn(reading, found, given),
        points=(14,),
        found=found,
        code=cell,
    )


def _drawn(reading: EncodedText, found: dict[str, Any], given: Given) -> Heads:
    """All heads as lines: of the reader's sentence, or those that were recorded."""
    if given.sentence is None:
        return heads_recorded(WORD, TARGET)
    return heads_of(reading, reading.position(found["word"]), reading.position(found["target"]))


def encoder_for(name: str | None) -> tuple[str, Any, str]:
    """A name, its encoder or None for nothing installed, and why a better one is not used.

    Raises `QkvError` where the encoder asked for is not installed; one that was not asked for and
    cannot be read is passed over.
    """
    if name is not None:
        return name, pretrained(name), ""
    problem = ""
    for choice in ("minilm", "static"):
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
    return ([word for word in words if fold(word) not in STOP_WORDS] or words)[-1]


def _nothing_here(problem: str) -> Step:
    return step(
        "A real transformer at work",
        tell(
            "No pretrained model is installed here. What a transformer of six layers made of "
            "twelve sentences was recorded; for a sentence of your own, `qkvsearch model fetch "
            "minilm` brings it, and `pip install 'qkvsearch[encoders]'` what reads it."
        ),
        *_reason(problem),
        heads_recorded(WORD, TARGET),
        points=(14,),
        found={"encoder": ""},
    )


def _reason(problem: str) -> list[Text]:
    return [tell("One is here but cannot be read: {problem}", problem=problem)] if problem else []


def _of_layers(found: dict[str, Any]) -> list[Text | Table]:
    """The head of each layer that attends most from the word to the target, and their cosine."""
    heads, cosines = found["heads"], found["cosines"]
    rows = [[n, int(row.argmax()), float(row.max())] for n, row in enumerate(heads)]
    return [
        tell(
            "This is {encoder}, a transformer of {n_layers} layers, in each {n_heads} *heads*: "
            "attentions side by side, each with matrices of its own, learned from texts. They are "
            "counted from 0. [CLS] and [SEP] are signs that it puts at both ends of a text.",
            n_layers=len(heads),
            n_heads=heads.shape[1],
            **found,
        ),
        tell(
            'Head {head} of layer {layer} attends most from "{word}" to "{target}", with weight '
            "{weight}. The cosine of the two words' vectors was {before} before any layer, and "
            "is {after} after the last: that is how much the layers changed the vectors by their "
            "context.",
            before=cosines[0],
            after=cosines[-1],
            **found,
        ),
        Table(
            say('From "{word}" to "{target}", the head that attends most', **found),
            [say("layer"), say("head"), say("weight"), say("cosine after")],
            [[*row, float(cosine)] for row, cosine in zip(rows, cosines[1:], strict=True)],
        ),
    ]


def _of_the_table(found: dict[str, Any], problem: str) -> list[Text | Table]:
    """What attention without weights makes of vectors that know no sentence."""
    return [
        *_reason(problem),
        tell(
            "This is no transformer but the *static* table: one vector a word, learned from "
            "texts, the same in every sentence. Attention over it has no weight matrices of its "
            'own, so words attend to words of similar meaning. The weight from "{word}" to '
            '"{target}" is {weight}.',
            **found,
        ),
        tell(
            "`qkvsearch model fetch minilm` brings a transformer, whose layers and heads were "
            "learned; then this step shows what they attend to."
        ),
    ]


def _largest(found: dict[str, Any]) -> Table:
    order = np.argsort(-found["row"], kind="stable")[:MOST]
    return Table(
        say('What "{word}" attends to most', **found),
        [say("word"), say("weight")],
        [[found["words"][j], float(found["row"][j])] for j in order],
    )
