"""Lesson 4: a search as query, keys and values, by the package's own keys and ranking."""

from __future__ import annotations

import numpy as np

from qkvsearch.attention import attention, dot_score
from qkvsearch.attention.weights import mix
from qkvsearch.lessons.course.search.catalogue import (
    LETTERS,
    QUERY,
    TAGS,
    TITLES,
    WIDTH,
    Catalogue,
)
from qkvsearch.lessons.course.search.questions import quizzes
from qkvsearch.lessons.messages import mark, say
from qkvsearch.lessons.own_numbers import refuse
from qkvsearch.lessons.parts import Formula, Given, Lesson, Matrix, Step, Table, tell
from qkvsearch.lessons.workbench import Workbench
from qkvsearch.retrieval import DenseKeys
from qkvsearch.retrieval.fusion import fuse

TITLE = mark("A search: query, keys and values")
GOAL = mark("Turn a search into scores, weights and a mix of what was found.")
MINUTES = 6

TOPICS = (mark("computing"), mark("electricity"), mark("kitchen"))
VALUES = np.array([[1, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0.5, 0.5], [0, 0, 1]])
TEMPERATURES = (4.0, 1.0, 0.25, 1e-4)


def lesson(given: Given) -> Lesson:
    refuse(given, "search", "sentence")
    videos = Catalogue(QUERY if given.sentence is None else given.sentence)
    bench = workbench(videos)
    steps = [asked(videos), scores(videos), mixed(bench), hard(bench), box(videos), meaning(videos)]
    return Lesson(
        name="search",
        number=4,
        title=say(TITLE),
        goal=say(GOAL),
        minutes=MINUTES,
        steps=steps,
        quizzes=quizzes(*steps[1:4]),
    )


def topics() -> list[str]:
    return [say(topic) for topic in TOPICS]


def workbench(videos: Catalogue) -> Workbench:
    return Workbench(
        name="search",
        caption=say("Ask for another word, change a key, or turn the temperature."),
        matrices={"queries": videos.asked, "keys": videos.keys, "values": VALUES},
        rows=[say("query")],
        columns=LETTERS,
        widths={"queries": videos.words, "keys": videos.words, "values": topics()},
        scale=1.0,
    )


def asked(videos: Catalogue) -> Step:
    return Step(
        say("A query, and what can be found"),
        [
            tell(
                "You type a query: “{query}”. The catalogue has five videos, each with a title and "
                "tags. A search compares the query with the *keys* of the videos, made of title "
                "and tags, and gives back their *values*: the videos themselves.",
                query=videos.query,
            ),
            Table(
                say("Videos"),
                [say("video"), say("title"), say("tags")],
                [list(row) for row in zip(LETTERS, TITLES, TAGS, strict=True)],
            ),
            tell("Over all words of the catalogue, the query is a row that counts its words:"),
            Matrix(say("query q"), videos.asked, [say("query")], videos.words, "query"),
        ],
        points=(8,),
        found={"query": videos.asked},
        code=f"""import numpy as np
from qkvsearch.embeddings import Analyzer
from qkvsearch.texts.vocabulary import count_terms
texts = {videos.texts}
vocabulary, counts = count_terms(texts, Analyzer().key_terms)
terms = [token.term for token in Analyzer().query_tokens({videos.query!r})]
rows = vocabulary.rows(terms)
q = np.bincount(rows[rows >= 0], minlength=len(vocabulary))[None].astype(float)
q""",
        result="query",
    )


def scores(videos: Catalogue) -> Step:
    products = dot_score(videos.asked, videos.keys, scale=1)
    return Step(
        say("Query times key: the score"),
        [
            tell(
                "A key is a row over the same words. Its number for a word is 0 where the video "
                "does not have it; it is larger for a word that few videos have, and for one "
                "that makes up more of the text. (The rule is called BM25.)"
            ),
            Matrix(say("keys K"), videos.keys, LETTERS, videos.words, "key"),
            Formula("q·Kᵀ"),
            tell(
                "The dot product of query and key is the video's score, as it was a film's for a "
                "user. The search box of `qkvsearch` computes the same: its scores differ by "
                "{difference}.",
                difference=np.abs(products[0] - videos.head.scores).max(),
            ),
            Matrix(say("scores q·Kᵀ"), products, [say("query")], LETTERS, "score"),
        ],
        points=(8,),
        found={"scores": products, "product": videos.head.scores, "keys": videos.keys},
        code="""from scipy.sparse import csc_matrix
from qkvsearch.retrieval import LexicalKeys
found = LexicalKeys.from_counts(vocabulary, counts)
K = csc_matrix((found.weights, found.indices, found.indptr)).toarray()
q @ K.T""",
        result="scores",
    )


def mixed(bench: Workbench) -> Step:
    """Softmax, and the weighted sum of the values."""
    found = bench.steps()
    weights, values = found["weights"], found["values"]
    return Step(
        say("Scores to weights, weights to a mix"),
        [
            tell(
                "*Softmax* turns scores into weights: every weight is positive, a larger score "
                "gets a larger one, and together they are {total}. The next lesson takes it apart.",
                total=weights.sum(),
            ),
            Matrix(say("weights w"), weights, [say("query")], LETTERS, "weights"),
            tell(
                "Now let the videos' values answer together. Here a value says what a video is "
                "about. Each value times its weight, added up, is what was found, on the whole:"
            ),
            Formula("Σ w·v"),
            Matrix(say("values V"), values, LETTERS, topics(), "value"),
            Matrix(say("output Σ w·v"), found["outputs"], [say("query")], topics(), "output"),
            bench,
        ],
        points=(9, 8),
        found={**found, "mix": mix(weights, values)},
        code=f"""from qkvsearch.attention import attention
V = np.array({VALUES.tolist()})
output, weights = attention(q, K, V, scale=1, return_weights=True)
output""",
        result="outputs",
    )


def hard(bench: Workbench, temperatures: tuple[float, ...] = TEMPERATURES) -> Step:
    """The scores over a temperature, down to almost 0."""
    each = [bench.steps(temperature=temperature) for temperature in temperatures]
    weights = np.vstack([steps["weights"] for steps in each])
    outputs = np.vstack([steps["outputs"] for steps in each])
    rows = [f"T = {temperature:g}" for temperature in temperatures]
    return Step(
        say("From a soft search to a hard one"),
        [
            tell(
                "Divide the scores by a number first, the *temperature* T. A high one evens the "
                "weights out. A low one gives nearly everything to the best video (and if two are "
                "equally good, half to each)."
            ),
            Formula("softmax(q·Kᵀ / T)"),
            Matrix(say("weights by temperature"), weights, rows, LETTERS, "weights"),
            Matrix(say("output by temperature"), outputs, rows, topics(), "output"),
            tell(
                "In the last row the largest weight is {largest}. That is a search as usual: one "
                "best answer, its value and nothing else. A soft search asks everybody, a hard "
                "one takes the winner; it is one formula.",
                largest=weights[-1].max(),
            ),
        ],
        points=(8, 9),
        found={"weights": weights, "outputs": outputs, "temperatures": list(temperatures)},
        code=f"""rows = [attention(q, K, V, scale=1 / T, return_weights=True)[1][0]
        for T in {list(temperatures)}]
np.array(rows)""",
        result="weights",
    )


def box(videos: Catalogue) -> Step:
    """The package's own ranking beside `attention`'s weights."""
    ranking = videos.ranked(videos.head)
    products = dot_score(videos.asked, videos.keys, scale=1)
    _, weights = attention(
        videos.asked,
        videos.keys,
        VALUES,
        mask=products > 0,
        scale=1 / ranking.temperature,
        return_weights=True,
    )
    engine = np.zeros(len(TITLES))
    engine[ranking.positions] = [hit.weight for hit in ranking]
    table = [
        [hit.rank, hit.id, hit.title, hit.weight, float(weights[0, position])]
        for hit, position in zip(ranking, ranking.positions, strict=True)
    ]
    return Step(
        say("The search box is this formula"),
        [
            tell(
                "Ask the search box itself. It hides videos that have none of the words (a *mask*, "
                "of which more later), takes as temperature how widely the scores spread, "
                "{temperature}, and ranks by weight. Beside its weights stand those of the "
                "function `attention`, from the same scores.",
                temperature=ranking.temperature,
            ),
            Table(
                say("Found"),
                [say("rank"), say("video"), say("title"), say("its weight"), say("attention's")],
                table,
            ),
            tell(
                "They differ by {difference}, which is rounding: a search is attention with one "
                "query.",
                difference=np.abs(engine - weights[0]).max(),
            ),
        ],
        points=(8, 9),
        found={"engine": engine, "weights": weights[0], "temperature": ranking.temperature},
        code=f"""mask = q @ K.T > 0
_, weights = attention(
    q, K, V, mask=mask, scale=1 / {ranking.temperature!r}, return_weights=True
)
weights[0]""",
        result="weights",
    )


def meaning(videos: Catalogue) -> Step:
    """Dense keys beside the words, fused as the engine fuses its heads."""
    query = videos.encoder.encode(videos.query)
    dense = DenseKeys(videos.meanings).head("meaning", query)
    heads = [videos.head] if dense is None else [videos.head, dense]
    ranking = videos.ranked(fuse(heads, [1] * len(heads)))
    cosines = dot_score(query.total[None].astype(np.float32), videos.meanings, scale=1)
    return Step(
        say("Found without the word"),
        [
            tell(
                "Words that stand in the same texts can be given embeddings that point the same "
                "way, learned from the catalogue itself. Queries and keys are then sums of their "
                "words' embeddings, brought to length one, and a video may be found that lacks the "
                "word."
            ),
            Matrix(say("keys of meaning"), videos.meanings, LETTERS, "12", "key"),
            Matrix(say("scores by meaning"), cosines, [say("query")], LETTERS, "score"),
            tell(
                "The search box adds up such *heads*, ways of asking, each measured by its own "
                "spread. With words and meaning together it answers:"
            ),
            Table(
                say("Found by words and meaning"),
                [say("rank"), say("video"), say("title"), say("score"), say("weight")],
                [[hit.rank, hit.id, hit.title, hit.score, hit.weight] for hit in ranking],
            ),
        ],
        points=(8,),
        found={"scores": cosines, "ranking": [hit.id for hit in ranking]},
        code=f"""from qkvsearch.embeddings import CorpusEncoder
encoder = CorpusEncoder(n_components={WIDTH}).fit(texts).encoder_
columns = [text.split("\\n") for text in texts]
keys = sum(encoder.encode_many(column) for column in zip(*columns))
keys = keys / np.linalg.norm(keys, axis=1, keepdims=True)
encoder.encode_many([{videos.query!r}]) @ keys.T""",
        result="scores",
    )
