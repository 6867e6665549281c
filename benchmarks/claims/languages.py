"""Meaning in many languages: XQuAD's questions on its paragraphs, by words, by meaning and by both.

XQuAD (Artetxe et al. 2020) has the same 240 paragraphs of Wikipedia and 1,190 questions on them in
several languages, translated by people. An item is a paragraph, and the one that a question was
asked of is right. Every second question is asked, every fourth in another language than the
paragraphs'. Nothing is chosen on the questions that are asked. How scores of Chinese questions on
English paragraphs are compared with common subjects was chosen on others
(`defaults/common_subjects.py`). Searches are as `search` answers by default: a question that it
takes for one without an answer has no hits and counts 0.

QKVSEARCH_DATA=data python benchmarks --only languages    (some minutes)
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import pandas as pd

import qkvsearch as qkv
from benchmarks.support.public_data import JudgedTexts, ted, xquad, xquad_path
from benchmarks.support.quality import ask, mean_over
from benchmarks.support.results import Row
from benchmarks.support.script import main
from benchmarks.support.timing import System, compare, timed, with_times
from qkvsearch.evaluation.metrics import reciprocal_rank
from qkvsearch.text.pretrained.fetch import find

K = 10
# What is timed: so many titles, and queries a turn.
N_TITLES, N_TIMED, TURNS = 1000, 20, 15
MAX_CACHE = "QKVSEARCH_MAX_CACHE"
# Languages whose file there may be; those without one are left out.
LANGUAGES = {
    "en": "English",
    "zh": "Chinese",
    "de": "German",
    "ar": "Arabic",
    "el": "Greek",
    "es": "Spanish",
    "hi": "Hindi",
    "ro": "Romanian",
    "ru": "Russian",
    "th": "Thai",
    "tr": "Turkish",
    "vi": "Vietnamese",
}
# Questions in these languages on paragraphs in English.
ASKED_ACROSS = ("zh", "de", "ar")


class Search(NamedTuple):
    """A build's encoder, the heads that search, and whether all questions get hits."""

    name: str
    encoder: str
    heads: Sequence[str] | None = None
    anyway: bool = False


SEARCHES = (
    Search("words alone", "corpus", ["lexical"]),
    Search("corpus, as built", "corpus"),
    Search("static, as built", "static"),
    Search("e5 alone", "e5", ["e5"]),
    Search("e5, as built", "e5"),
)
ACROSS = (Search("e5, as built", "e5"), Search("e5, as built, `--anyway`", "e5", anyway=True))


def asked_of(language: str, step: int) -> JudgedTexts:
    """The paragraphs, and every `step`-th question."""
    data = xquad(language)
    kept = list(data.queries)[::step]
    return replace(data, queries={id_: data.queries[id_] for id_ in kept})


def compared(
    task: str, items: pd.DataFrame, asked: JudgedTexts, systems: Sequence[Search]
) -> Iterator[Row]:
    """Yield MRR@10 of each system, and for how many questions it finds nothing."""
    texts = list(asked.queries.values())
    judge = mean_over(reciprocal_rank, K, asked.queries, asked.judgements)
    columns = qkv.Columns(id="id", text=asked.text)
    with TemporaryDirectory() as folder:
        for encoder in dict.fromkeys(system.encoder for system in systems):
            if encoder != "corpus" and find(encoder) is None:
                continue
            path = Path(folder, encoder)
            with qkv.build(path, items=items, columns=columns, encoder=encoder) as engine:
                for system in (one for one in systems if one.encoder == encoder):
                    found = ask(engine, system.heads, K, texts, anyway=system.anyway)
                    silent = sum(not hits for hits in found) / len(found)
                    yield Row(task, system.name, f"MRR@{K}", judge([found]))
                    yield Row(task, system.name, "without hits", silent)


def alone(language: str) -> list[Row]:
    """Questions and paragraphs in one language."""
    if not xquad_path(language).exists():
        return []
    data = asked_of(language, step=2)
    return list(compared(LANGUAGES[language], data.items, data, SEARCHES))


def across(language: str) -> list[Row]:
    """Questions in a language on paragraphs in English."""
    if not (xquad_path(language).exists() and xquad_path("en").exists()):
        return []
    items = xquad("en").items
    task = f"Questions in {LANGUAGES[language]}, paragraphs in English"
    return list(compared(task, items, asked_of(language, step=4), ACROSS))


def times() -> list[Row]:
    """Searching and building with e5, beside minilm."""
    if find("e5") is None or find("minilm") is None:
        return []
    talks = ted("dev")
    queries = list(talks.queries.values())[:N_TIMED]
    titles = talks.items[["id", "title"]].iloc[:N_TITLES]
    columns = qkv.Columns(id="id", title="title", text=("title",))
    with TemporaryDirectory() as folder, no_cache():
        systems, seconds = [], []
        for encoder in ("minilm", "e5"):
            path = Path(folder, encoder)
            build = partial(qkv.build, path, items=titles, columns=columns, encoder=encoder)
            took, engine = timed(build)
            seconds.append(took)
            systems.append(System(encoder, partial(ask, engine, None, K)))
        rows = compare(
            f"a search of {N_TITLES:,} titles", systems, [queries], turns=TURNS, per=N_TIMED
        )
        built = [Row(f"building {N_TITLES:,} titles", system.name) for system in systems]
        return [*rows, *with_times(built, seconds)]


@contextmanager
def no_cache() -> Iterator[None]:
    """Encode texts that the user's cache has, too."""
    before = os.environ.get(MAX_CACHE)
    os.environ[MAX_CACHE] = "0"
    try:
        yield
    finally:
        del os.environ[MAX_CACHE]
        if before is not None:
            os.environ[MAX_CACHE] = before


PARTS = {language: partial(alone, language) for language in LANGUAGES}
PARTS |= {f"{language}-en": partial(across, language) for language in ASKED_ACROSS}
PARTS |= {"times": times}

if __name__ == "__main__":
    main(__file__, PARTS)
