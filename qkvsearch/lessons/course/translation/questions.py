"""Questions about translation: who asks, who answers, and where the answers weigh most."""

from __future__ import annotations

import numpy as np

from qkvsearch.attention.trace import Trace
from qkvsearch.lessons.messages import say
from qkvsearch.lessons.quizzes import Quiz


def quizzes(found: Trace) -> list[Quiz]:
    return [a_score(found), most_weight(found), who_asks(found), how_many(found), a_weight(found)]


def a_score(found: Trace) -> Quiz:
    words, characters = found["scores"].rows, found["scores"].columns
    query, key = found["queries"].array[2], found["keys"].array[3]
    return Quiz(
        "translation.1",
        say(
            "The query after “{word}” is {query}, the key of {character} is {key}. What is the "
            "score, before it is divided by √d?",
            word=words[2],
            query=query,
            character=characters[3],
            key=key,
        ),
        float(found["scores"].array[2, 3]),
        say(
            "Number by number, then added: {products}, together {score}.",
            products=query * key,
            score=found["scores"].array[2, 3],
        ),
    )


def most_weight(found: Trace) -> Quiz:
    weights = found["weights"].array[1]
    characters = found["weights"].columns
    return Quiz(
        "translation.2",
        say("Which character does the query after “{word}” attend to most?", word="the"),
        float(np.argmax(weights)),
        say(
            "Its query asks for the sea most of all. The weights of its row are {weights}.",
            weights=weights,
        ),
        choices=characters,
    )


def who_asks(found: Trace) -> Quiz:
    return Quiz(
        "translation.3",
        say(
            "The English words written so far stay; the Chinese sentence is replaced. Which of "
            "queries, keys and values stay as they are in this attention?"
        ),
        0.0,
        say(
            "The queries come from the decoder, which has written “{words}”. Keys and values come "
            "from the encoder: they change with what it reads.",
            words=" ".join(found["queries"].rows),
        ),
        choices=(say("the queries"), say("the keys"), say("the values")),
    )


def how_many(found: Trace) -> Quiz:
    L, S = len(found["weights"].rows), 2 * len(found["weights"].columns)
    return Quiz(
        "translation.4",
        say(
            "{L} words are written, and the Chinese sentence has {S} characters. How many weights "
            "are there?",
            L=L,
            S=S,
        ),
        float(np.zeros((L, S)).size),
        say("One for each word and each character: {L} × {S} = {n}.", L=L, S=S, n=L * S),
        tolerance=0,
    )


def a_weight(found: Trace) -> Quiz:
    scaled, weights = found["scaled"].array[0], found["weights"].array[0]
    return Quiz(
        "translation.5",
        say(
            "Divided by √d, the first row of scores is {scaled}. What is its first weight, to two "
            "decimals? (exp of each score, over the sum of all four)",
            scaled=scaled,
        ),
        float(weights[0]),
        say(
            "exp gives {powers}, together {total}; the first over the total is {weight}.",
            powers=np.exp(scaled),
            total=np.exp(scaled).sum(),
            weight=weights[0],
        ),
    )
