"""Lesson 9, what comes out of attention: a label for each word or for all, and aware vectors."""

import numpy as np
from numpy import ndarray as Array

from qkvsearch.attention import attention
from qkvsearch.attention.layers import Linear
from qkvsearch.attention.scores import cosine_score
from qkvsearch.lessons.cells import ran
from qkvsearch.lessons.drawings import AttendedText, Heads
from qkvsearch.lessons.messages import marks, said, say
from qkvsearch.lessons.parts import Matrix, Step, Table, step, tell

# Made by hand: how much a word names, does and describes something, and how pleasant it is.
GOOD = {"This": [3, 0, 0, 0], "is": [0, 3, 0, 0], "good": [0, 0, 3, 2]}
# From these to pronoun, verb and adjective; and to positive and negative.
W_LABEL = np.array([[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0]], dtype=float)
W_MOOD = np.array([[0, 0, 0, 1], [0, 0, 0, -1]], dtype=float)
LABELS = marks("pronoun", "verb", "adjective")
MOODS = marks("a positive judgement", "a negative judgement")

ANIMAL = "The animal didn't cross the street because it was too tired".split()
# Made by hand: how much a word is a thing, alive, a place, and says what goes on.
MEANINGS = {
    "animal": [2, 2, 0, 0],
    "cross": [0, 0, 1, 2],
    "street": [2, 0, 2, 0],
    "it": [2, 1, 0.5, 1.5],
    "tired": [0, 2, 0, 1],
}
SMALL_WORD = [0, 0, 0, 1]
# In the place of "tired".
WIDE = [0, 0, 2, 1]
NOUNS = ("animal", "street")
# At most this many weights are listed.
MOST = 6

# Light is 1, dark is −1.
IMAGE = np.kron(np.eye(2) * 2 - 1, np.ones((2, 2)))


def steps() -> list[Step]:
    return [labels(), patches(), it()]


# --- labels ---


def label(X: Array, W_label: Array, W_mood: Array) -> tuple[Array, ...]:
    mixed, weights = attention(X, X, X, return_weights=True)
    labels = Linear(W_label)(mixed)
    mood = Linear(W_mood)(mixed.mean(axis=0))
    return mixed, weights, labels, mood


def labels(x: Array | None = None) -> Step:
    x = np.array(list(GOOD.values()), dtype=float) if x is None else x
    cell, values = ran(label, X=x, W_label=W_LABEL, W_mood=W_MOOD)
    found, words = (
        dict(zip(("mixed", "weights", "labels", "mood"), values, strict=True)),
        list(GOOD),
    )
    chosen = [say(LABELS[j]) for j in found["labels"].argmax(axis=1)]
    mood = say(MOODS[int(found["mood"].argmax())])
    single = label(x[:1], W_LABEL, W_MOOD)[1]
    return step(
        "A label for each word, or one for all",
        tell(
            "As many vectors come out of attention as go in: here {n}. A layer after it can "
            "give each a label, the largest of its scores: {said}. The vectors were made by "
            "hand: naming, doing, describing, how pleasant.",
            n=len(x),
            said=say(", ").join(chosen),
        ),
        Matrix(
            say("scores of the labels"),
            found["labels"],
            words,
            said(LABELS),
            "score",
        ),
        tell(
            "Or one label for the whole sentence: the mean of the outputs goes through a "
            'layer, and "{sentence}" is {mood}.',
            sentence=" ".join(words),
            mood=mood,
        ),
        Matrix(
            say("scores of the sentence"),
            found["mood"][None],
            [say("all")],
            said(MOODS),
            "score",
        ),
        tell(
            "A single vector may go in, too. It can only attend to itself, so its weight is "
            "{weight}, and its output is its own value.",
            weight=float(single[0, 0]),
        ),
        points=(20, 21, 22),
        found={**found, "said": chosen, "sentence": mood, "single": single},
        code=cell,
    )


def of_patches(image: Array) -> tuple[Array, Array]:
    cut = image.reshape(2, 2, 2, 2).swapaxes(1, 2).reshape(4, 4)
    outputs, weights = attention(cut, cut, cut, return_weights=True)
    return outputs, weights


def patches(image: Array = IMAGE) -> Step:
    cell, (outputs, weights) = ran(of_patches, image=image)
    # Two waves of sound in frames of half a wave: up, down, up, down.
    frames = np.sin(np.arange(20) * np.pi / 5).reshape(4, 5)
    sound = attention(frames, frames, frames, return_weights=True)[1]
    rows = [say("patch {n}", n=n + 1) for n in range(4)]
    waves = [say("frame {n}", n=n + 1) for n in range(4)]
    return step(
        "Not only words",
        tell(
            "Attention takes any sequence of vectors. An image of 4 × 4 dots is cut into "
            "four patches of 2 × 2, each a vector of four numbers; a sound is cut into "
            "frames. The call is the same, and equal things attend to each other."
        ),
        Matrix(say("image"), image, list("1234"), list("1234"), "input"),
        Matrix(say("weights of the patches"), weights, rows, list("1234"), "weights"),
        Matrix(say("weights of the frames"), sound, waves, list("1234"), "weights"),
        points=(19,),
        found={"weights": weights, "sound": sound, "outputs": outputs},
        code=cell,
    )


# --- a vector that knows its surroundings ---


def meanings() -> Array:
    """The vectors of `ANIMAL`, made by hand, (11, 4)."""
    return np.array([MEANINGS.get(word, SMALL_WORD) for word in ANIMAL], dtype=float)


def of_themselves(X: Array) -> Array:
    mixed = attention(X, X, X)
    return mixed


def weights_of(X: Array, words: list[str], word: str) -> Array:
    _, weights = attention(X, X, X, return_weights=True)
    return weights[words.index(word)]


def nearness(x: Array) -> dict[str, tuple[float, float]]:
    """Cosines of *it* with the animal, with the street, and on average with the other words, before
    and after it is mixed with what it attends to.
    """
    here, mixed = ANIMAL.index("it"), of_themselves(x)
    cosines = np.array([cosine_score(a[[here]], x)[0] for a in (x, mixed)])
    places = {name: [ANIMAL.index(name)] for name in NOUNS}
    others = [i for i, word in enumerate(ANIMAL) if word not in ("it", *NOUNS)]
    return {
        name: (float(cosines[0, at].mean()), float(cosines[1, at].mean()))
        for name, at in {**places, "others": others}.items()
    }


def it(x: Array | None = None) -> Step:
    """What *it* attends to by vectors made by hand, and what it is nearer to afterwards."""
    x = meanings() if x is None else x
    place, (cell, weights) = ANIMAL.index("it"), ran(weights_of, X=x, words=ANIMAL, word="it")
    order = np.argsort(-weights, kind="stable")
    top, mixed = [ANIMAL[j] for j in order], of_themselves(x)
    wide = x.copy()
    wide[-1] = WIDE
    near, swapped = nearness(x), nearness(wide)
    names = [say("a thing"), say("alive"), say("a place"), say("goes on")]
    titles = {"animal": "animal", "street": "street", "others": say("the other words, on average")}
    return step(
        "An output knows its surroundings",
        tell(
            'What is "it" in "{sentence}" (an example of Jakob Uszkoreit\'s, 2017)? The vectors '
            'are made by hand. By them "it" attends most to "{first}", "{second}" and "{third}": '
            "to itself and to the two things that it could be.",
            sentence=" ".join(ANIMAL),
            first=top[0],
            second=top[1],
            third=top[2],
        ),
        Table(
            say('Weights of "it", made by hand'),
            [say("word"), say("weight")],
            [[ANIMAL[j], float(weights[j])] for j in order[:MOST]],
        ),
        Heads(
            "hand",
            say("Every word of the sentence, by the vectors made by hand: point at one"),
            (AttendedText(ANIMAL, attention(x, x, x, return_weights=True)[1][None, None]),),
            word=place,
        ),
        Matrix(
            say('"it", before and after'),
            np.stack([x[place], mixed[place]]),
            [say("before"), say("after")],
            names,
            "output",
        ),
        tell(
            "Mixed with what it attends to, it comes nearer to both of them, and not to the other "
            "words. (Cosine: the dot product at length one.) That is what context does to a vector."
        ),
        Table(
            say('Cosine of "it" with'),
            [say("word"), say("before"), say("after"), say("after, “wide” for “tired”")],
            [[titles[name], *near[name], swapped[name][1]] for name in near],
        ),
        tell(
            'But it does not find out which one is meant: "animal" was nearer from the start, by '
            "our hand, and it stays nearer where the street is “too wide” (last column). Does a "
            "real model find out? The last lesson asks one."
        ),
        points=(14, 15),
        found={"top": top, "weights": weights, "mixed": mixed, "near": near, "swapped": swapped},
        code=cell,
    )
