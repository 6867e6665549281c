"""Lesson 4: a search as query, keys and values, by the package's own keys and ranking."""

from collections.abc import Sequence

import numpy as np
from numpy import ndarray as Array

from qkvsearch.attention import attention
from qkvsearch.attention.weights import mix
from qkvsearch.errors import DataError
from qkvsearch.lessons.cells import ran
from qkvsearch.lessons.course.search.counting import counted, key_rows
from qkvsearch.lessons.course.search.questions import quizzes
from qkvsearch.lessons.drawings import Arrows, Flow
from qkvsearch.lessons.messages import mark, marks, said, say
from qkvsearch.lessons.parts import Formula, Given, Matrix, Step, Table, Text, step, tell
from qkvsearch.lessons.quizzes import Quiz
from qkvsearch.lessons.workbench import Workbench
from qkvsearch.retrieval import DenseKeys, LexicalKeys, Ranking, Scores
from qkvsearch.retrieval.fusion import fuse
from qkvsearch.retrieval.ranking import rank
from qkvsearch.text.analysis import Analyzer
from qkvsearch.text.text_encoder import item_keys
from qkvsearch.text.vocabulary import count_terms

TITLE = mark("A search: query, keys and values")
GOAL = mark("Turn a search into scores, weights and a mix of what was found.")
MINUTES = 14
TAKES = ("sentence",)

QUERY = "transformer"
TITLES = ("Transformer code", "Attention query", "Power transformer", "Oven power", "Bread oven")
TAGS = ("attention query", "code", "transformer", "oven power", "bread")
LETTERS = "ABCDE"
# Directions that the meaning of so few words has.
WIDTH = 2

TOPICS = marks("computing", "electricity", "kitchen")
VALUES = np.array([[1, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0.5, 0.5], [0, 0, 1]])
TEMPERATURES = (4.0, 1.0, 0.25, 1e-4)


def lesson(given: Given) -> tuple[list[Step], list[Quiz]]:
    videos = Videos(QUERY if given.sentence is None else given.sentence)
    bench = workbench(videos)
    compared, attended_to, colder = scores(videos), mixed(bench), hard(bench)
    steps = [asked(videos), compared, counted(videos.texts), attended_to, colder]
    return [*steps, box(videos), meaning(videos)], quizzes(compared, attended_to, colder)


# --- the videos ---


def query_row(texts: list[str], query: str) -> np.ndarray:
    vocabulary, _ = count_terms(texts, Analyzer().key_terms)
    rows = vocabulary.rows(token.term for token in Analyzer().query_tokens(query))
    q = np.bincount(rows[rows >= 0], minlength=len(vocabulary))[None].astype(float)
    return q


class Videos:
    """The videos with their `keys` (n_videos, n_words), and a query: `asked` (1, n_words).

    Raises `DataError` where no video has a word of the query.
    """

    def __init__(self, query: str = QUERY) -> None:
        self.query = query
        self.texts = [f"{title}\n{tags}" for title, tags in zip(TITLES, TAGS, strict=True)]
        self.vocabulary, counts = count_terms(self.texts, Analyzer().key_terms)
        lexical = LexicalKeys.from_counts(self.vocabulary, counts)
        head = lexical.head(Analyzer().query_tokens(query))
        if head is None:
            raise DataError(
                f"`sentence`: no word of {query!r} is in a title or tag of the lesson's videos; "
                f"use some of: {', '.join(self.words)}"
            )
        self.head: Scores = head
        self.asked, self.keys = query_row(self.texts, query), key_rows(self.texts)

    @property
    def words(self) -> list[str]:
        """Of each term, a word as it is written."""
        written = {t.term: t.text for text in self.texts for t in Analyzer().tokens(text)}
        return [written[term.decode()] for term in self.vocabulary.terms]

    def ranked(self, head: Scores) -> Ranking:
        """What the search box does with the scores of a head."""
        return rank(
            head,
            lambda found: ([LETTERS[i] for i in found], [TITLES[i] for i in found]),
            k=len(TITLES),
        )


# --- the steps ---


def workbench(videos: Videos) -> Workbench:
    return Workbench(
        name="search",
        caption=say("Ask for another word, change a key, or turn the temperature."),
        matrices={"queries": videos.asked, "keys": videos.keys, "values": VALUES},
        rows=[say("query")],
        columns=LETTERS,
        widths={"queries": videos.words, "keys": videos.words, "values": said(TOPICS)},
        scale=1.0,
    )


def asked(videos: Videos) -> Step:
    cell, value = ran(query_row, texts=videos.texts, query=videos.query)
    return step(
        "A query, and what can be found",
        tell(
            "You type a query: “{query}”. The catalog has five videos, each with a title and "
            "tags. A search compares the query with the *keys* of the videos, made of title "
            "and tags, and gives back their *values*: the videos themselves.",
            query=videos.query,
        ),
        Table(
            say("Videos"),
            [say("video"), say("title"), say("tags")],
            [list(row) for row in zip(LETTERS, TITLES, TAGS, strict=True)],
        ),
        tell("Over all words of the catalog, the query is a row that counts its words:"),
        Matrix(say("query q"), value, [say("query")], videos.words, "query"),
        points=(8,),
        found={"query": value},
        code=cell,
    )


def scored(texts: list[str], q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    K = key_rows(texts)
    scores = q @ K.T
    return K, scores


def scores(videos: Videos) -> Step:
    cell, (keys, products) = ran(scored, texts=videos.texts, q=videos.asked)
    return step(
        "Query times key: the score",
        tell(
            "A key is a row over the same words. Its number for a word is 0 where the video "
            "does not have it; it is larger for a word that few videos have, and for one "
            "that makes up more of the text. (The rule is called BM25: Robertson and Zaragoza, "
            "2009. The next step explains it.)"
        ),
        Matrix(say("keys K"), keys, LETTERS, videos.words, "key"),
        Formula("q·Kᵀ"),
        tell(
            "The dot product of query and key is the video's score, as it was a film's for a user. "
            "The search box of `qkvsearch` computes the same: its scores differ by {difference}.",
            difference=np.abs(products[0] - videos.head.scores).max(),
        ),
        Matrix(say("scores q·Kᵀ"), products, [say("query")], LETTERS, "score"),
        points=(8,),
        found={"scores": products, "product": videos.head.scores, "keys": keys},
        code=cell,
    )


def attended(q: np.ndarray, K: np.ndarray, V: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    output, weights = attention(q, K, V, scale=1, return_weights=True)
    return output, weights


def mixed(bench: Workbench) -> Step:
    """Softmax, and the weighted sum of the values."""
    found = bench.steps()
    values = found["values"]
    cell, (output, weights) = ran(attended, q=found["queries"], K=found["keys"], V=values)
    return step(
        "Scores to weights, weights to a mix",
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
        Matrix(say("values V"), values, LETTERS, said(TOPICS), "value"),
        Matrix(say("output Σ w·v"), output, [say("query")], said(TOPICS), "output"),
        Flow(
            "mix",
            say("A search is attention with one query: play it, and turn the temperature"),
            bench,
            asks=say("query"),
            asked=say("video"),
        ),
        bench,
        points=(9, 8),
        found={**found, "mix": mix(weights, values)},
        code=cell,
    )


def over(q: Array, K: Array, V: Array, temperatures: tuple[float, ...]) -> tuple[Array, Array]:
    found = [attention(q, K, V, scale=1 / T, return_weights=True) for T in temperatures]
    outputs, weights = (np.vstack(parts) for parts in zip(*found, strict=True))
    return outputs, weights


def hard(bench: Workbench, temperatures: tuple[float, ...] = TEMPERATURES) -> Step:
    """The scores over a temperature, down to almost 0."""
    q, K, V = bench.matrices.values()
    cell, (outputs, weights) = ran(over, q=q, K=K, V=V, temperatures=temperatures)
    rows = [f"T = {temperature:g}" for temperature in temperatures]
    return step(
        "From a soft search to a hard one",
        tell(
            "Divide the scores by a number first, the *temperature* T. A high one evens the "
            "weights out. A low one gives nearly everything to the best video (and if two are "
            "equally good, half to each)."
        ),
        Formula("softmax(q·Kᵀ / T)"),
        Matrix(say("weights by temperature"), weights, rows, LETTERS, "weights"),
        Matrix(say("output by temperature"), outputs, rows, said(TOPICS), "output"),
        tell(
            "In the last row the largest weight is {largest}. That is a search as usual: one "
            "best answer, its value and nothing else. A soft search mixes all answers, a "
            "hard one takes the best; it is one formula.",
            largest=weights[-1].max(),
        ),
        points=(8, 9),
        found={"weights": weights, "outputs": outputs, "temperatures": list(temperatures)},
        code=cell,
    )


def under_a_mask(q: np.ndarray, K: np.ndarray, V: np.ndarray, temperature: float) -> np.ndarray:
    mask = q @ K.T > 0
    _, weights = attention(q, K, V, mask=mask, scale=1 / temperature, return_weights=True)
    return weights[0]


def box(videos: Videos) -> Step:
    """The package's own ranking beside `attention`'s weights."""
    ranking = videos.ranked(videos.head)
    given = {"q": videos.asked, "K": videos.keys, "V": VALUES}
    cell, value = ran(under_a_mask, **given, temperature=ranking.temperature)
    engine = np.zeros(len(TITLES))
    engine[ranking.positions] = [hit.weight for hit in ranking]
    table = [
        [hit.rank, hit.id, hit.title, hit.weight, float(value[position])]
        for hit, position in zip(ranking, ranking.positions, strict=True)
    ]
    return step(
        "The search box is this formula",
        tell(
            "Ask the search box itself. It hides videos that have none of the words (a *mask*, of "
            "which more later), takes as temperature the standard deviation of the scores, "
            "{temperature} (the root of their mean squared distance from the mean), and ranks by "
            "weight. Beside its weights stand those of the function `attention`, from the same "
            "scores.",
            temperature=ranking.temperature,
        ),
        Table(
            say("Found"),
            [say("rank"), say("video"), say("title"), say("its weight"), say("attention's")],
            table,
        ),
        tell(
            "They differ by {difference}, which is rounding: a search is attention with one query.",
            difference=np.abs(engine - value).max(),
        ),
        points=(8, 9),
        found={"engine": engine, "weights": value, "temperature": ranking.temperature},
        code=cell,
    )


def by_meaning(texts: list[str], query: str, width: int) -> tuple[np.ndarray, np.ndarray]:
    from qkvsearch.embeddings import CorpusEncoder

    encoder = CorpusEncoder(n_components=width).fit(texts).encoder_
    columns = list(zip(*(text.split("\n") for text in texts), strict=True))
    keys = item_keys(encoder.encode_many, columns)
    scores = encoder.encode_many([query]) @ keys.T
    return keys, scores


def without_the_word(videos: Videos, ranking: Sequence[str]) -> list[Text]:
    """Which of what was found has no word of the query; nothing where all have one."""
    lacking = [place for place in ranking if not videos.head.scores[LETTERS.index(place)]]
    if not lacking:
        return []
    first = lacking[0]
    return [
        tell(
            "No word of “{query}” stands in video {letter}, “{title}”: its score for the words "
            "is 0. Its place, {rank} of {n}, comes from the meaning alone.",
            query=videos.query,
            letter=first,
            title=TITLES[LETTERS.index(first)],
            rank=ranking.index(first) + 1,
            n=len(ranking),
        )
    ]


def meaning(videos: Videos) -> Step:
    """Dense keys beside the words, fused as the engine fuses its heads."""
    from qkvsearch.embeddings import CorpusEncoder

    encoder = CorpusEncoder(n_components=WIDTH).fit(videos.texts).encoder_
    cell, (keys, cosines) = ran(by_meaning, texts=videos.texts, query=videos.query, width=WIDTH)
    dense = DenseKeys(keys).head("meaning", encoder.encode(videos.query))
    heads = [videos.head] if dense is None else [videos.head, dense]
    ranking = videos.ranked(fuse(heads, [1] * len(heads)))
    return step(
        "Found without the word",
        tell(
            "Words that stand in the same texts can be given embeddings that point the same way, "
            "learned from the catalog itself. Queries and keys are then sums of their words' "
            "embeddings, brought to length one, and a video may be found that lacks the word."
        ),
        Matrix(say("keys of meaning"), keys, LETTERS, "12", "key"),
        Matrix(say("scores by meaning"), cosines, [say("query")], LETTERS, "score"),
        Arrows(
            "meaning",
            say(
                "Query and keys as arrows of length one: the dot product is the cosine of the angle"
            ),
            np.vstack([encoder.encode_many([videos.query]), keys]),
            [say("query"), *LETTERS],
            (say("first number"), say("second number")),
        ),
        tell(
            "The search box asks in both ways, by words and by meaning, and adds up the two "
            "scores. (Such ways of asking are called *heads*, as in lesson 10.) To make them "
            "comparable, it subtracts from each score the mean over all videos and divides by "
            "the standard deviation; each of the two counts half. Together they answer:"
        ),
        Table(
            say("Found by words and meaning"),
            [say("rank"), say("video"), say("title"), say("score"), say("weight")],
            [[hit.rank, hit.id, hit.title, hit.score, hit.weight] for hit in ranking],
        ),
        *without_the_word(videos, [str(hit.id) for hit in ranking]),
        points=(8,),
        found={"keys": keys, "scores": cosines, "ranking": [hit.id for hit in ranking]},
        code=cell,
    )
