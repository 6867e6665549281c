"""Queries whose words the catalog lacks: `ITEM_SHARE` of heads/common_subjects.py, and what is
answered with it.

Chinese questions of XQuAD on its paragraphs in English, and on the same where every fourth is in
Chinese; of the questions, those that `claims/languages.py` does not ask. Short queries, written for
this: what talks and films are about, and things that neither has. A query is answered where a hit
is shown that is no weak match. "Cosines alone" is a search without common subjects.

QKVSEARCH_DATA=data python benchmarks --only common_subjects    (ten minutes)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean
from tempfile import TemporaryDirectory
from unittest.mock import patch

import pandas as pd

import qkvsearch as qkv
from benchmarks.support.public_data import JudgedTexts, data_folder, ted, xquad
from benchmarks.support.quality import ask
from benchmarks.support.results import Row
from benchmarks.support.script import main
from qkvsearch.evaluation.metrics import reciprocal_rank
from qkvsearch.heads.stored_models import StoredModels
from qkvsearch.rank.grades import WEAK
from qkvsearch.text.pretrained.fetch import find

K = 10
SHARES = (0.0, 0.25, 0.5, 0.75, 0.9, 1.0)
# One paragraph of so many is in Chinese.
ONE_OF = 4
# What TED's talks are about, and what they are not.
TALKS = (
    "气候变化 睡眠 癌症 教育 机器人 海洋 音乐 幸福 记忆 语言 "
    "贫困 恐龙 火星 创造力 民主 女性权利 大脑 病毒 建筑 设计"
).split()
NO_TALKS = (
    "打印机墨盒 租房合同 牛仔裤 婴儿推车 报税表 红烧肉做法 公交时刻表 螺丝刀 洗衣粉 "
    "停车罚单 护照照片 床单 轮胎 遥控器 窗帘轨道 洗碗机 按揭利率 牙膏"
).split()
TALKS_IN_GERMAN = (
    "Klimawandel Schlaf Krebs Roboter Ozean Gehirn Armut Bildung Dinosaurier Kreativität "
    "Gedächtnis Sprachen Architektur Frauenrechte Einsamkeit Mars Musik Demokratie"
).split()
NO_TALKS_IN_GERMAN = (
    "Druckerpatrone Mietvertrag Kinderwagen Steuererklärung Schraubenzieher Waschpulver Bettwäsche "
    "Autoreifen Fernbedienung Gardinenschiene Spülmaschine Zahnpasta Rasenmäher Bohrmaschine"
).split()
FILMS = [
    *("war", "time travel", "basketball", "prison escape", "animation for children"),
    *("martial arts", "World War II", "high school romance", "detective", "zombies", "space"),
    *("cancer patient", "gangsters", "mountaineering", "cooking", "pirates", "toys", "lawyer"),
    *("chess", "pianist", "divorce", "dinosaurs", "ghosts", "earthquake"),
]
NO_FILMS = [
    *("printer ink", "tax return form", "washing powder", "baby stroller", "screwdriver set"),
    *("parking ticket", "bed sheets", "car tyres", "remote control batteries", "rental contract"),
    *("spreadsheet formula", "sourdough starter", "wallpaper", "toothpaste", "office chair"),
    *("curtain rail", "flight schedule", "mortgage rates", "dishwasher", "pension fund"),
]


def questions() -> Iterator[Row]:
    """How well Chinese questions find paragraphs, by the share that is subtracted."""
    if find("e5") is None:
        return
    english, chinese = xquad("en"), xquad("zh")
    asked = dict(list(chinese.queries.items())[1::ONE_OF])
    mixed = english.items.copy()
    is_chinese = [row % ONE_OF == 0 for row in range(len(mixed))]
    mixed[is_chinese] = chinese.items[is_chinese].to_numpy()
    for name, items in (("paragraphs in English", english.items), ("one of four Chinese", mixed)):
        own = set(items["id"][is_chinese]) if items is mixed else set()
        for kind, is_own in (("on English", False), ("on Chinese", True)):
            queries = {
                query: text
                for query, text in asked.items()
                if own.isdisjoint(chinese.judgements[query]) != is_own
            }
            if queries:
                task = f"{name}: {len(queries)} Chinese questions {kind}"
                yield from by_share(task, items, chinese, queries)


def by_share(
    task: str, items: pd.DataFrame, data: JudgedTexts, queries: dict[str, str]
) -> Iterator[Row]:
    for share in SHARES:
        columns = qkv.Columns(id="id", text=data.text)
        with (
            TemporaryDirectory() as place,
            patch("qkvsearch.heads.common_subjects.ITEM_SHARE", share),
            qkv.build(place, items=items, columns=columns, encoder="e5") as engine,
        ):
            found = ask(engine, None, K, queries.values(), anyway=True)
        values = [
            reciprocal_rank(ids, data.judgements[query], K)
            for ids, query in zip(found, queries, strict=True)
        ]
        yield Row(task, f"{share:g} of what is common", f"MRR@{K}", fmean(values))


def short_queries() -> Iterator[Row]:
    """How many short queries are answered, of what a catalog has and of what it lacks."""
    if find("e5") is None:
        return
    films = data_folder() / "zh-films" / "films.csv"
    asked = {"Chinese": (TALKS, NO_TALKS), "German": (TALKS_IN_GERMAN, NO_TALKS_IN_GERMAN)}
    yield from answered("talks in English", ted("dev").items, asked)
    if films.exists():
        yield from answered("films in Chinese", films, {"English": (FILMS, NO_FILMS)})


def answered(
    catalog: str, items: object, asked: Mapping[str, tuple[Sequence[str], Sequence[str]]]
) -> Iterator[Row]:
    """asked: by language, what the catalog has and what it lacks."""
    with TemporaryDirectory() as place:
        qkv.build(place, items=items, encoder="e5").close()
        for language, (has, lacks) in asked.items():
            task = f"{catalog}, asked in {language}"
            yield from shares(task, "common subjects", place, has, lacks)
            with patch.object(StoredModels, "subjects", None):
                yield from shares(task, "cosines alone", place, has, lacks)


def shares(
    task: str, system: str, workspace: str, has: Sequence[str], lacks: Sequence[str]
) -> Iterator[Row]:
    with qkv.open(workspace) as engine:
        for kind, queries in (("what it has", has), ("what it lacks", lacks)):
            found = [is_shown(engine, query) for query in queries]
            yield Row(task, system, f"answered of {kind}", fmean(found))


def is_shown(engine: qkv.Engine, query: str) -> bool:
    return any(hit.match != WEAK for hit in engine.search(query, k=K))


PARTS = {"questions": questions, "short": short_queries}

if __name__ == "__main__":
    main(__file__, PARTS)
