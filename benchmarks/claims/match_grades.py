"""What the grades of first hits are worth, on sets of judged queries that they were not fitted on.

Of the first hits: the share of the strong ones that is right, the share of the right ones that is
strong, and which shares of the wrong and of the right ones are weak. TED's test queries and XQuAD's
have one right item each. Of Cranfield's items, each query's source is left out, which the
judgements mark −1. *Asked at length* is how many of the strong among five hits of TED's queries
stay strong behind "how do you deal with" and "please show me something about", and how many grades
turn from strong to weak or back. Two words of a title of videos and films are searched for as well;
a hit is right if its title has both in any form.

QKVSEARCH_DATA=data python benchmarks --only match_grades    (ten minutes)
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd

import qkvsearch as qkv
from benchmarks.support.public_data import (
    JudgedTexts,
    cranfield,
    data_folder,
    own_documents,
    ted,
    xquad,
)
from benchmarks.support.results import Row
from benchmarks.support.script import main
from qkvsearch.rank.grades import STRONG, WEAK
from qkvsearch.text.analysis import stem
from qkvsearch.text.encoders import CHOICES
from qkvsearch.text.pretrained.fetch import find

N_QUERIES, SEED, N_HITS = 400, 37, 5
LEADS = ("how do you deal with", "please show me something about")
LANGUAGES = ("en", "zh", "de")


def judged(data: JudgedTexts, task: str, encoder: str, sources: Mapping[str, str]) -> list[Row]:
    """The worth of the grades of first hits. sources: the item of a query that is left out."""
    with TemporaryDirectory() as folder, _built(data, encoder, folder) as engine:
        firsts = []
        for id_, text in data.queries.items():
            hits = [hit for hit in engine.search(text, k=2) if str(hit.id) != sources.get(id_)]
            if hits:
                firsts.append((hits[0].match, str(hits[0].id) in data.judgements.get(id_, ())))
        return worth(f"{task} with {encoder}", firsts, len(data.queries))


def _built(data: JudgedTexts, encoder: str, folder: str) -> qkv.Engine:
    title = "title" if "title" in data.items else None
    columns = qkv.Columns(id="id", title=title, text=data.text)
    return qkv.build(Path(folder, "built"), items=data.items, columns=columns, encoder=encoder)


def talks(encoder: str) -> list[Row]:
    if not _is_there(encoder):
        return []
    return judged(ted("test"), "TED talks", encoder, {})


def abstracts(encoder: str) -> list[Row]:
    if not _is_there(encoder):
        return []
    return judged(cranfield(), "Cranfield", encoder, own_documents())


def paragraphs(encoder: str) -> Iterable[Row]:
    if not _is_there(encoder):
        return
    for language in LANGUAGES:
        yield from judged(xquad(language), f"XQuAD, {language},", encoder, {})


def asked_at_length() -> list[Row]:
    data = ted("test")
    rows = []
    with TemporaryDirectory() as folder, _built(data, "static", folder) as engine:
        texts = list(data.queries.values())[::4]
        alone = [_grades_by_id(engine, text) for text in texts]
        for lead in LEADS:
            pairs = []
            for text, own in zip(texts, alone, strict=True):
                led = _grades_by_id(engine, f"{lead} {text}")
                pairs += [(grade, led[id_]) for id_, grade in own.items() if id_ in led]
            kept = [after == STRONG for before, after in pairs if before == STRONG]
            turned = sum(set(pair) == {STRONG, WEAK} for pair in pairs)
            task = f"TED talks with static, behind “{lead}”"
            rows.append(Row(task, "strong hits that stay strong", "share", float(np.mean(kept))))
            rows.append(Row(task, "grades that turn to the other end", "number", turned))
    return rows


def _grades_by_id(engine: qkv.Engine, text: str) -> dict[str, str | None]:
    return {str(hit.id): hit.match for hit in engine.search(text, k=N_HITS)}


def titles(path: str, title: str) -> list[Row]:
    table = pd.read_csv(data_folder() / path, dtype=str).drop_duplicates(title)
    words = [set(_words(text)) for text in table[title]]
    counts, rng = Counter(word for of in words for word in of), np.random.default_rng(SEED)
    queries: list[list[str]] = []
    for row in rng.permutation(len(words)).tolist():
        rare = sorted(word for word in words[row] if counts[word] < 0.01 * len(words))
        if len(rare) > 1 and len(queries) < N_QUERIES:
            queries.append(rng.permutation(rare)[:2].tolist())
    items = pd.DataFrame({"id": range(len(table)), "title": table[title].to_numpy()})
    with TemporaryDirectory() as folder:
        engine = qkv.build(Path(folder, "titles"), items=items, encoder="static")
        firsts = []
        for two in queries:
            for hit in engine.search(" ".join(two), k=1):
                firsts.append((hit.match, _stems(two) <= _stems(_words(hit.title))))
        return worth(f"Two words of a title, {path}", firsts, len(queries))


def _stems(words: Iterable[str]) -> set[str]:
    return {stem(word) for word in words}


def _words(text: str) -> list[str]:
    return re.findall(r"[a-z]{3,}", text.lower())


def worth(task: str, firsts: list[tuple[str | None, bool]], n_queries: int) -> list[Row]:
    """Rows of what grades are worth. firsts: the grade of each first hit, and if it is right."""
    grade = np.array([match for match, _ in firsts])
    right = np.array([is_right for _, is_right in firsts])
    shares = {
        "strong hits that are right": right[grade == STRONG],
        "right hits that are strong": grade[right] == STRONG,
        "wrong hits that are weak": grade[~right] == WEAK,
        "right hits that are weak": grade[right] == WEAK,
    }
    rows = [Row(task, what, "share", float(of.mean())) for what, of in shares.items() if len(of)]
    return [*rows, Row(task, "queries without hits", "share", 1 - len(firsts) / n_queries)]


def _is_there(encoder: str) -> bool:
    return encoder == "corpus" or find(encoder) is not None


def _parts() -> dict[str, Callable[[], Iterable[Row]]]:
    encoders = [choice for choice in CHOICES if choice not in ("auto", "best")]
    parts: dict[str, Callable[[], Iterable[Row]]] = {}
    for encoder in encoders:
        parts[f"talks-{encoder}"] = partial(talks, encoder)
    for encoder in ("corpus", "static"):
        parts[f"abstracts-{encoder}"] = partial(abstracts, encoder)
        parts[f"paragraphs-{encoder}"] = partial(paragraphs, encoder)
    return parts


PARTS: dict[str, Callable[[], Iterable[Row]]] = {
    **_parts(),
    "asked-at-length": asked_at_length,
    "youtube": partial(titles, "youtube/USvideos_2017.csv", "title"),
    "films": partial(titles, "ml-latest-small/movies.csv", "title"),
}
# E5 reads paragraphs for minutes.
EXTRA = {"paragraphs-e5": partial(paragraphs, "e5")}

if __name__ == "__main__":
    main(__file__, PARTS, EXTRA)
