"""What passages find in long texts: the right episode, and the passage that was asked for.

Sentences of 81 transcripts, of some 7,000 words each, are asked for, the same ones in both tables.
A question has a share of the content words of its sentence, drawn at random, in their order. The
right episode is the one with the sentence, and a right passage has all of it. Every word of a
question is thus said in the episode, which suits words better than meaning. "words" is BM25 alone;
as 81 items teach the corpus encoder too little, its build ranks by words too. "right passage given"
is how often the first hit is the right episode with a right passage, and "among its three" how
often one of its three best passages is right. Whole texts have no passages to give.

The tables of costs are of made episodes, whose words are drawn as often as the transcripts have
them, beside their passages as items of their own. Seconds of a build are those of processors, as a
busy machine gives them too; memory is the most that its process had.

QKVSEARCH_DATA=data python benchmarks --only passages    (Linux; five minutes)
QKVSEARCH_DATA=data python benchmarks --only passages:large    (ten minutes more)
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, nullcontext
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from typing import NamedTuple
from unittest.mock import patch

import numpy as np
import pandas as pd

import qkvsearch as qkv
from benchmarks.support.public_data import data_folder
from benchmarks.support.results import Row
from benchmarks.support.script import main
from benchmarks.support.timing import System, compare, with_times
from qkvsearch.evaluation.metrics import reciprocal_rank
from qkvsearch.text.analysis import Analyzer
from qkvsearch.text.passages import Break, passages, sentences
from qkvsearch.text.pretrained.fetch import find

SEED = 52
K = 10
N_QUESTIONS = 200
# The shares of a sentence's content words that are asked.
SHARES = (0.6, 0.3)
# How many content words a sentence has that is asked for.
FEWEST, MOST = 10, 25
# So many words no text has: none is split.
NEVER = sys.maxsize
# Of the made episodes: how many there are, their sentences, and the words of a sentence.
N_EPISODES, N_SENTENCES, SHORTEST, LONGEST = 2_000, 110, 8, 24
GIGABYTES = "GB of memory at the most"
# Of the large builds: segments, characters of all, the share of their words that are made, and the
# exponent of the Zipf distribution of these.
N_SEGMENTS, N_CHARACTERS, MADE_SHARE, EXPONENT = 25_000, 119_000_000, 1 / 40, 1.15


class Question(NamedTuple):
    """Words of a sentence, and the episode that has it."""

    text: str
    episode: str
    sentence: str


class Contender(NamedTuple):
    """A way to search. heads: of the search, all where it is None."""

    name: str
    encoder: str
    has_passages: bool
    heads: str | None = None


CONTENDERS = (
    Contender("words, whole texts", "corpus", False, heads="lexical"),
    Contender("as built with corpus, passages", "corpus", True),
    Contender("as built with static, whole texts", "static", False),
    Contender("as built with static, passages", "static", True),
)


# --- what is found ---


def transcripts() -> Iterator[Row]:
    """The transcripts, by each contender."""
    with TemporaryDirectory() as place, ExitStack() as opened:
        engines: dict[tuple[str, bool], qkv.Engine] = {}
        for one in CONTENDERS:
            key = one.encoder, one.has_passages
            if key not in engines and (one.encoder == "corpus" or find(one.encoder) is not None):
                folder = Path(place, f"{len(engines)}")
                engines[key] = opened.enter_context(built(folder, one.encoder, one.has_passages))
        texts = texts_of(engines["corpus", True])
        for share in SHARES:
            asked = questions(texts, share)
            task = f"{len(texts)} transcripts, {len(asked)} questions of {share:.0%} of a sentence"
            for one in CONTENDERS:
                if (engine := engines.get((one.encoder, one.has_passages))) is not None:
                    yield from found(task, one, engine, asked)


def built(folder: Path, encoder: str, has_passages: bool) -> qkv.Engine:
    """The workspace of the transcripts."""
    whole = patch("qkvsearch.text.passages.LONG", NEVER)
    with nullcontext() if has_passages else whole:
        engine = qkv.build(folder, items=data_folder() / "transcripts", encoder=encoder)
    is_split = engine.models.units is not None
    assert is_split == has_passages
    return engine


def texts_of(engine: qkv.Engine) -> dict[str, str]:
    """The text of each episode, as it was read."""
    table = engine.items.to_frame()
    return dict(zip(table["id"], table["text"], strict=True))


def questions(texts: dict[str, str], share: float) -> list[Question]:
    """Questions for sentences that one episode alone has, once, drawn from all of them."""
    rng, analyzer = np.random.default_rng(SEED), Analyzer()
    known: list[tuple[str, str, list[str]]] = []
    for episode, text in texts.items():
        for sentence in sentences(text):
            said = one_line(text[sentence.start : sentence.end])
            words = [token.text for token in analyzer.query_tokens(said)]
            # Nobody asks for the time or the speaker that a transcript writes before what is said.
            is_speech_alone = sentence.begins < Break.HEADING and not set("[]:") & set(said)
            if is_speech_alone and FEWEST <= len(words) <= MOST:
                known.append((episode, said, words))
    times = Counter(said for _, said, _ in known)
    known = [one for one in known if times[one[1]] == 1]

    asked: list[Question] = []
    for number in rng.choice(len(known), N_QUESTIONS, replace=False).tolist():
        episode, said, words = known[number]
        kept = np.sort(rng.choice(len(words), round(share * len(words)), replace=False))
        asked.append(Question(" ".join(words[place] for place in kept), episode, said))
    return asked


def one_line(text: str) -> str:
    return " ".join(text.split())


def found(
    task: str, contender: Contender, engine: qkv.Engine, asked: Sequence[Question]
) -> Iterator[Row]:
    """How often the right episode is first, and its passage the right one."""
    ranks: list[float] = []
    is_first: list[bool] = []
    is_given: list[bool] = []
    is_among: list[bool] = []
    for question in asked:
        hits = engine.search(question.text, k=K, heads=contender.heads, passages=3)
        ids = [hit.id for hit in hits]
        ranks.append(reciprocal_rank(ids, {question.episode: 1}, K))
        is_first.append(ids[:1] == [question.episode])
        right = [False]
        if is_first[-1] and contender.has_passages:
            # The first of them is the hit's own passage.
            right = [question.sentence in one_line(own["text"]) for own in hits[0].passages]
        is_given.append(right[0])
        is_among.append(any(right))
    yield Row(task, contender.name, f"MRR@{K}", fmean(ranks))
    yield Row(task, contender.name, "right episode first", fmean(is_first))
    if contender.has_passages:
        yield Row(task, contender.name, "right passage given", fmean(is_given))
        yield Row(task, contender.name, "among its three", fmean(is_among))


# --- what it costs ---


def costs() -> list[Row]:
    """Builds and searches of made episodes, beside their passages as items."""
    rng = np.random.default_rng(SEED)
    episodes = made_episodes(rng)
    flat = [text[start:end] for text in episodes for start, end in passages(text)]
    tables = {
        f"{len(episodes):,} episodes, {len(flat):,} passages": episodes,
        f"{len(flat):,} items": flat,
    }
    asked = [" ".join(text.split()[:LONGEST:4]) for text in rng.choice(flat, N_QUESTIONS).tolist()]
    memory: list[Row] = []
    work: list[float] = []
    systems: list[System] = []
    with TemporaryDirectory() as place, ExitStack() as opened:
        for number, (name, texts) in enumerate(tables.items()):
            items, workspace = Path(place, f"{number}.csv"), Path(place, f"{number}")
            titles = [f"Number {n}" for n in range(len(texts))]
            pd.DataFrame({"id": titles, "title": titles, "text": texts}).to_csv(items, index=False)
            steps = build_steps(workspace, items)
            memory.append(Row("a build with static", name, GIGABYTES, steps["peak"] / 1e9))
            work.append(steps["work"])
            systems.append(System(name, opened.enter_context(qkv.Engine(workspace)).search))
        searches = compare("a search of words of a passage, with static", systems, asked)
    return [*with_times(memory, work), *searches]


def made_episodes(rng: np.random.Generator) -> list[str]:
    """Texts of made sentences."""
    files = sorted(Path(data_folder(), "transcripts").glob("*.md"))
    said = [word for path in files for word in path.read_text("utf-8").split() if word.isalpha()]
    known, counts = np.unique(said, return_counts=True)
    lengths = rng.integers(SHORTEST, LONGEST + 1, size=N_EPISODES * N_SENTENCES)
    drawn = rng.choice(known, size=lengths.sum(), p=counts / counts.sum())
    made = [" ".join(part) + "." for part in np.split(drawn, np.cumsum(lengths)[:-1])]
    return [
        " ".join(made[first : first + N_SENTENCES]) for first in range(0, len(made), N_SENTENCES)
    ]


def large() -> list[Row]:
    """Builds of 119 MB of text, 25,000 segments of 2,000 episodes: a row each segment, and a row
    each episode.

    The sentences are those of the transcripts in random order. A fortieth of their words is
    replaced by made ones, few of which recur, so that there are as many words as in real texts of
    that length.
    """
    segments = made_segments(np.random.default_rng(SEED))
    episodes = [
        "\n\n".join(part) for part in np.array_split(np.array(segments, object), N_EPISODES)
    ]
    size = f"{sum(map(len, segments)) / 1e6:,.0f} MB of text"
    rows: list[Row] = []
    work: list[float] = []
    with TemporaryDirectory() as place:
        for name, texts in (("episodes", episodes), ("segments", segments)):
            items = Path(place, f"{name}.csv")
            titles = [f"Number {n}" for n in range(len(texts))]
            pd.DataFrame({"id": titles, "title": titles, "text": texts}).to_csv(items, index=False)
            steps = build_steps(Path(place, name), items)
            system = f"{len(texts):,} {name}"
            rows.append(
                Row(f"a build of {size} with static", system, GIGABYTES, steps["peak"] / 1e9)
            )
            work.append(steps["work"])
    return with_times(rows, work)


def made_segments(rng: np.random.Generator) -> list[str]:
    """Texts of sentences of the transcripts in random order, with made words among theirs."""
    files = sorted(Path(data_folder(), "transcripts").glob("*.md"))
    texts = [path.read_text("utf-8") for path in files]
    said = [
        one_line(text[sentence.start : sentence.end])
        for text in texts
        for sentence in sentences(text)
    ]
    words = sorted({word for text in said for word in text.split() if word.isalpha()})
    length = N_CHARACTERS / N_SEGMENTS
    made = []
    for _ in range(N_SEGMENTS):
        parts: list[str] = []
        left = length * rng.uniform(0.5, 1.5)
        while left > 0:
            own = said[rng.integers(len(said))].split()
            for place in np.flatnonzero(rng.random(len(own)) < MADE_SHARE).tolist():
                own[place] = made_word(words, int(rng.zipf(EXPONENT)))
            parts.append(" ".join(own))
            left -= len(parts[-1]) + 1
        made.append(" ".join(parts))
    return made


def made_word(words: Sequence[str], number: int) -> str:
    """Return the beginning of one word and the end of another one, the same for each number."""
    first = words[number % len(words)]
    last = words[(number * 7_919 + number // len(words)) % len(words)]
    return first[: len(first) // 2] + last[len(last) // 2 :]


def build_steps(workspace: Path, items: Path) -> dict[str, float]:
    """What a build in a process of its own took."""
    command = [sys.executable, "-m", "benchmarks.support.build_steps", workspace, items, "static"]
    done = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)


has_static = find("static") is not None
PARTS = {"transcripts": transcripts, **({"costs": costs} if has_static else {})}
EXTRA = {"large": large} if has_static else {}

if __name__ == "__main__":
    main(__file__, PARTS, EXTRA)
