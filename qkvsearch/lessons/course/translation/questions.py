"""Questions about translation: who asks, who answers, and where the answers weigh most."""

import numpy as np

from qkvsearch.attention.trace import Trace
from qkvsearch.lessons.messages import say
from qkvsearch.lessons.quizzes import Quiz, quiz


def quizzes(found: Trace) -> list[Quiz]:
    return [
        a_score(found),
        most_weight(found),
        quiz(
            "The English words written so far stay; the Chinese sentence is replaced. Which of "
            "queries, keys and values stay as they are in this attention?",
            0.0,
            "The queries come from the decoder, which has written “{words}”. Keys and values come "
            "from the encoder: they change with what it reads.",
            choices=(say("the queries"), say("the keys"), say("the values")),
            words=" ".join(found["queries"].rows),
        ),
        how_many(found),
        a_weight(found),
    ]


def a_score(found: Trace) -> Quiz:
    words, characters = found["scores"].rows, found["scores"].columns
    query, key = found["queries"].array[2], found["keys"].array[3]
    return quiz(
        "The query after “{word}” is {query}, the key of {character} is {key}. What is the "
        "score, before it is divided by √d?",
        float(found["scores"].array[2, 3]),
        "Number by number, then added: {products}, together {score}.",
        word=words[2],
        query=query,
        character=characters[3],
        key=key,
        products=query * key,
        score=found["scores"].array[2, 3],
    )


def most_weight(found: Trace) -> Quiz:
    weights = found["weights"].array[1]
    characters = found["weights"].columns
    return quiz(
        "Which character does the query after “{word}” attend to most?",
        float(np.argmax(weights)),
        "Its query asks for the sea most of all. The weights of its row are {weights}.",
        choices=characters,
        word="the",
        weights=weights,
    )


def how_many(found: Trace) -> Quiz:
    L, S = len(found["weights"].rows), 2 * len(found["weights"].columns)
    return quiz(
        "{L} words are written, and the Chinese sentence has {S} characters. How many weights "
        "are there?",
        float(np.zeros((L, S)).size),
        "One for each word and each character: {L} × {S} = {n}.",
        tolerance=0,
        L=L,
        S=S,
        n=L * S,
    )


def a_weight(found: Trace) -> Quiz:
    scaled, weights = found["scaled"].array[0], found["weights"].array[0]
    return quiz(
        "Divided by √d, the first row of scores is {scaled}. What is its first weight, to two "
        "decimals? (exp of each score, over the sum of all four)",
        float(weights[0]),
        "exp gives {powers}, together {total}; the first over the total is {weight}.",
        scaled=scaled,
        powers=np.exp(scaled),
        total=np.exp(scaled).sum(),
        weight=weights[0],
    )
