"""Lesson 6: translation, where the sentence being written asks the sentence being read."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy import ndarray as Array

from qkvsearch.attention import softmax
from qkvsearch.attention.layers import Linear, MultiHeadAttention
from qkvsearch.attention.symbols import numbered
from qkvsearch.attention.trace import Trace
from qkvsearch.lessons.cells import given as named
from qkvsearch.lessons.cells import ran
from qkvsearch.lessons.course.translation.length import length
from qkvsearch.lessons.course.translation.questions import quizzes
from qkvsearch.lessons.drawings import Flow
from qkvsearch.lessons.messages import mark, say
from qkvsearch.lessons.parts import Formula, Given, Matrix, Step, Table, arrays, step, tell
from qkvsearch.lessons.quizzes import Quiz
from qkvsearch.lessons.workbench import Workbench

TITLE = mark("Translation, one sentence asking another")
GOAL = mark("Say where the query, the keys and the values of a translation come from.")
MINUTES = 14

CHINESE = "潮水退了，才知道谁没穿裤子"
ENGLISH = "When the tide goes out, we know who is not wearing pants."
TARGET, SOURCE = ("When", "the", "tide"), tuple("潮水退了")
# Made by hand, to be followed by hand: how much sea, water, motion and completion is in each.
Q = np.array([[2, 2, 0, 0], [4, 1, 0, 0], [0, 0, 4, 1]], dtype=float)
K = np.array([[2, 1, 0, 0], [1, 2, 0, 0], [0, 0, 2, 1], [0, 0, 1, 2]], dtype=float)
V = np.array([[3, 1, 0, 0], [1, 3, 0, 0], [0, 0, 3, 1], [0, 0, 1, 3]], dtype=float)

# Which words the layer knows, and what each of them means, as the values have it.
WORDS = ("When", "the", "tide", "goes", "out", "pants")
MEANINGS = np.array(
    [[0, 0, 0, 1], [1, 1, -1, -1], [2, 1, -1, -1], [-1, -1, 2, 1], [-1, -1, 1, 2], [0, 1, 0, 0]],
    dtype=float,
)


def lesson(given: Given) -> tuple[list[Step], list[Quiz]]:
    bench = workbench()
    found = bench.trace(bench.matrices)
    steps = [
        vectors(found),
        alignment(found),
        beside_a_person(found),
        second_output(found),
        next_word(found),
        one_sentence(),
        length(),
        by_hand(bench, found),
    ]
    return steps, quizzes(found)


def workbench(queries: Any = Q, keys: Any = K, values: Any = V) -> Workbench:
    """Three words written so far, four characters read."""
    return Workbench(
        name="translation",
        caption=say("Let a word ask for something else, and see what it attends to."),
        matrices={"queries": queries, "keys": keys, "values": values},
        rows=TARGET,
        columns=SOURCE,
        widths=dict.fromkeys(("queries", "keys", "values"), meanings()),
    )


def meanings() -> list[str]:
    return [say("sea"), say("water"), say("motion"), say("completion")]


def labelled(found: Trace, name: str, title: str) -> Matrix:
    """A step of the trace, with its columns called by what they mean."""
    return replace(Matrix.of(found[name], title), columns=meanings())


# --- where the three come from ---


def vectors(found: Trace) -> Step:
    three = arrays(found, "queries", "keys", "values")
    return step(
        "One sentence is read, the other is written",
        tell(
            "We translate {chinese} into “{english}” One half of the network, the *encoder*, "
            "reads the Chinese; the other, the *decoder*, writes the English, a word at a "
            "time. It has written “{written}” and must go on.",
            chinese=CHINESE,
            english=ENGLISH,
            written=" ".join(TARGET),
        ),
        tell(
            "The *queries* come from the decoder. Each says, after a word, what has to be known "
            "for the next one. (It is a common slip to take them from the encoder.) *Keys* and "
            "*values* come from the encoder, one of each for every character. Attention in which "
            "one sequence asks another is called *cross-attention*. The numbers are made by hand; "
            "a network learns them."
        ),
        labelled(found, "queries", say("queries Q, from the decoder")),
        labelled(found, "keys", say("keys K, from the encoder")),
        labelled(found, "values", say("values V, from the encoder")),
        points=(10, 13),
        found=three,
        code=named(**{name[0].upper(): array for name, array in three.items()}),
    )


def weighed(Q: np.ndarray, K: np.ndarray) -> np.ndarray:
    weights = softmax(Q @ K.T / np.sqrt(K.shape[1]))
    return weights


def alignment(found: Trace) -> Step:
    cell, weights = ran(weighed, Q=found["queries"].array, K=found["keys"].array)
    most = [SOURCE[place] for place in weights.argmax(axis=1)]
    return step(
        "Every word attends to every character",
        tell(
            "Each query is scored against each key, the scores are divided by √d, where d is "
            "how many numbers a key has, here {d}, and softmax turns each row into weights. "
            "{L} words by {S} characters are {count} weights. A sentence of another length "
            "would be no trouble: it would only make the rows longer. Each query gets one output: "
            "{L} words, {L} outputs, whatever the length of the sentence.",
            d=found["keys"].array.shape[1],
            L=len(weights),
            S=weights.shape[1],
            count=weights.size,
        ),
        Formula("softmax(Q·Kᵀ/√d)"),
        Matrix.of(found["scores"], say("scores")),
        Matrix.of(found["weights"], say("weights")),
        tell(
            "Read a row as: having written this word, where do I look for what comes next? "
            "After “{word}” the decoder attends most to {most}.",
            word=TARGET[-1],
            most=most[-1],
        ),
        points=(10,),
        found={"weights": weights, "scores": found["scores"].array, "most": most},
        code=cell,
    )


def last_output(weights: np.ndarray, V: np.ndarray) -> np.ndarray:
    return weights[-1] @ V


def beside_a_person(found: Trace) -> Step:
    """A translator's three steps for the last word, each beside the vectors' step."""
    cell, output = ran(last_output, weights=found["weights"].array, V=found["values"].array)
    query, weights = found["queries"].array[-1], found["weights"].array[-1]
    order = np.argsort(-weights)
    word, written = predicted(output), " ".join(TARGET)
    rows = [
        [
            say("I have written “{written}”. What do I need now?", written=written),
            say("the last query: {query}", query=query),
        ],
        [
            say(
                "I look for it in the Chinese: {first}, and a little {second}.",
                first=SOURCE[order[0]],
                second=SOURCE[order[1]],
            ),
            say("query · keys, then softmax: {weights}", weights=weights),
        ],
        [
            say("I put together what they mean, and write “{word}”.", word=word),
            say("weights × values, added up: {output}", output=output),
        ],
    ]
    return step(
        "Three steps of a person, three steps of vectors",
        tell("What the formula does is what a translator does, only in numbers."),
        Table(
            say("A translator and a network at the same sentence"),
            [say("a person"), say("vectors")],
            rows,
        ),
        points=(11,),
        found={"query": query, "weights": weights, "output": output, "rows": rows, "word": word},
        code=cell,
    )


def added_up(weights: np.ndarray, V: np.ndarray) -> np.ndarray:
    return sum(weights[1, i] * V[i] for i in range(len(V)))


def second_output(found: Trace) -> Step:
    """b² takes the weights of the second query: the first index is easily written wrong."""
    cell, value = ran(added_up, weights=found["weights"].array, V=found["values"].array)
    first, second = found["outputs"].array[0], value
    weighted = found["weighted"]
    return step(
        "The second output",
        tell(
            "Take the second word, “{word}”. Its output, b², adds up the values v¹, v², …, "
            "each times a weight α′₂ᵢ. The first index is the query's, 2; the second, i, runs "
            "over the characters. The mark ′ says: after softmax.",
            word=TARGET[1],
        ),
        Formula("b² = α′₂₁·v¹ + α′₂₂·v² + α′₂₃·v³ + α′₂₄·v⁴ = Σᵢ α′₂ᵢ·vⁱ"),
        Matrix(
            say("weighted values of the second query"),
            weighted.array[1],
            SOURCE,
            meanings(),
            "weighted",
        ),
        tell(
            "Added up by column: b² = {second}. Who slips and keeps the first query's weights, "
            "α′₁ᵢ, gets {first}, which is b¹ once more.",
            second=second,
            first=first,
        ),
        points=(10,),
        found={"b2": second, "b1": first, "weighted": weighted.array[1]},
        code=cell,
    )


# --- from a vector to a word ---


def scored(output: np.ndarray, meanings: np.ndarray) -> np.ndarray:
    dense = Linear(meanings)
    return dense(output)


def predicted(output: np.ndarray) -> str:
    return WORDS[int(scored(output, MEANINGS).argmax())]


def next_word(found: Trace) -> Step:
    output = found["outputs"].array[-1]
    cell, scores = ran(scored, output=output, meanings=MEANINGS)
    probabilities = softmax(scores)
    word = predicted(output)
    return step(
        "From a vector to a word",
        tell(
            "The last output, {output}, is the *prediction vector*. A *dense layer* has a "
            "row of numbers for each word it knows; the dot product with the vector is the "
            "word's score, and softmax turns the scores into probabilities. For “{word}” the "
            "products are {products}, together {score}.",
            output=output,
            word=word,
            products=output * MEANINGS[WORDS.index(word)],
            score=scores[WORDS.index(word)],
        ),
        Matrix(say("dense layer: a row a word"), MEANINGS, WORDS, meanings(), "weight"),
        Table(
            say("The words that this small layer knows"),
            [say("word"), say("score"), say("probability")],
            [[w, float(s), float(p)] for w, s, p in zip(WORDS, scores, probabilities, strict=True)],
        ),
        tell(
            "The word with the largest score (its place is called the *argmax*) is “{word}”. "
            "It is written, gives the next query, and so on.",
            word=word,
        ),
        points=(12,),
        found={"vector": output, "scores": scores, "probabilities": probabilities, "word": word},
        code=cell,
    )


# --- towards the next lesson ---


def from_one_sentence(target: Array, source: Array) -> tuple[Array, Array, Array]:
    layer = MultiHeadAttention.create(target.shape[1], n_heads=1, rng=0, dtype=np.float64)
    return layer(target, memory=source), layer(target, memory=target), layer(target)


def one_sentence(target: np.ndarray = Q, source: np.ndarray = K) -> Step:
    """Source and target the same: nothing is left of the difference to self-attention."""
    cell, (across, own, itself) = ran(from_one_sentence, target=target, source=source)
    difference = float(np.abs(own - itself).max())
    columns = numbered(own.shape[1])
    return step(
        "When a sentence asks itself",
        tell(
            "In a network, a layer first multiplies the vectors of a sentence by a matrix each "
            "for queries, keys and values; the next lesson shows it slowly. Here it has random "
            "weights. The decoder's vectors make Q, the encoder's make K and V:"
        ),
        Matrix(say("outputs, decoder asks encoder"), across, TARGET, columns, "output"),
        tell(
            "Now give the same layer the English on both sides: all three come from it. That is "
            "*self-attention*, and a layer that gets the English alone has the same outputs "
            "(largest difference {difference}). Its rows are nearly equal here: with these "
            "random matrices every query gives nearly all its weight to one and the same key.",
            difference=difference,
        ),
        Matrix(say("outputs, the English asks itself"), own, TARGET, columns, "output"),
        points=(13,),
        found={"across": across, "own": own, "self": itself, "difference": difference},
        code=cell,
    )


def mixed(weights: np.ndarray, V: np.ndarray) -> np.ndarray:
    return weights @ V


def by_hand(bench: Workbench, found: Trace) -> Step:
    cell, value = ran(mixed, weights=found["weights"].array, V=found["values"].array)
    return step(
        "Your turn",
        tell(
            "Change a query and predict, before you look, which character it will attend to most."
        ),
        labelled(found, "outputs", say("outputs")),
        Flow(
            "alignment",
            say("From Chinese to English: point at a cell, or play it step by step"),
            bench,
            asks=say("word written"),
            asked=say("character"),
        ),
        bench,
        found={"outputs": value},
        code=cell,
    )
