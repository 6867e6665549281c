"""How much each text column counts in a head's keys: alike, and by lengths, as a build has them.

Descriptions of videos: an item's title is the first sentence of its description, its body all of
it; the queries are the video's title or its tags, which are not indexed. nDCG@10 of each dense head
alone, beside its best weights of a grid, and the description as one text. Weights learned from
passages taken out of the descriptions were no better. Titles and tags of TED talks, both short,
count alike by their lengths; a grid shows what other weights would do for the dev queries.

QKVSEARCH_DATA=data python benchmarks --only column_weights    (two minutes, most of them minilm's)
"""

from __future__ import annotations

import re
from functools import partial

import numpy as np
import pandas as pd

from benchmarks.support.public_data import data_folder, ted
from benchmarks.support.results import Row
from benchmarks.support.script import main
from qkvsearch.learn.head_weights import length_weights
from qkvsearch.text.encoders import TextEncoder, dense_heads, fitted_encoder, prior_weights
from qkvsearch.text.pretrained.fetch import find
from qkvsearch.text.text_encoder import item_keys

K = 10
GRID = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7)
SENTENCE_END = re.compile(r"(?<=[.!?])\s|\n")
# Words of a first sentence, and how many times as long its description is at least.
SENTENCE, TIMES = (4, 40), 2


def descriptions() -> list[Row]:
    videos = described_videos()
    fields = [videos["first"].tolist(), videos["body"].tolist()]
    asked = {name: videos[name].tolist() for name in ("title", "tags")}
    answers = np.arange(len(videos))
    encoders = fitted(fields)
    rows = []
    for head, encoder in encoders.items():
        columns = [encoder.encode_many(texts) for texts in fields]
        settings = {
            "alike": np.array([0.5, 0.5]),
            "by lengths": length_weights(fields),
        }
        whole = [fields[1]]  # the description has its first sentence already
        for name, queries in asked.items():
            query = encoder.encode_many(queries)
            judge = partial(ndcg, query, answers=answers)
            found = {
                f"{label}: {weights[0]:.2f}, {weights[1]:.2f}": judge(kept(columns, weights))
                for label, weights in settings.items()
            }
            best = max(GRID, key=lambda share: judge(kept(columns, [share, 1 - share])))
            found[f"best of a grid: {best:.2f}, {1 - best:.2f}"] = judge(
                kept(columns, [best, 1 - best])
            )
            found["one text"] = judge(item_keys(encoder.encode_many, whole))
            task = f"{len(videos)} descriptions by {name}, {head} alone"
            rows += [Row(task, label, f"nDCG@{K}", value) for label, value in found.items()]
    return rows


def talks() -> list[Row]:
    data = ted("dev")
    fields = [data.items[name].tolist() for name in data.text]
    places = {item: place for place, item in enumerate(data.items["id"])}
    answers = np.array([places[next(iter(data.judgements[query]))] for query in data.queries])
    queries, rows = list(data.queries.values()), []
    for head, encoder in fitted(fields).items():
        columns = [encoder.encode_many(texts) for texts in fields]
        query = encoder.encode_many(queries)
        for share in GRID:
            value = ndcg(query, kept(columns, [share, 1 - share]), answers)
            label = f"title {share:.2f}, tags {1 - share:.2f}"
            rows.append(Row(f"TED dev queries, {head} alone", label, f"nDCG@{K}", value))
    return rows


def choice() -> str:
    return "static" if find("minilm") is None else "minilm"


def fitted(fields: list[list[str]]) -> dict[str, TextEncoder]:
    heads = dense_heads(prior_weights(choice()))
    return {head: fitted_encoder(head, fields, choice()) for head in heads}


def described_videos() -> pd.DataFrame:
    """Videos with the columns title, tags, body and first, its first sentence."""
    path = data_folder() / "youtube" / "USvideos_2018.csv"
    videos = pd.read_csv(path, dtype=str, keep_default_na=False).drop_duplicates("video_id")
    body = videos["description"].str.replace("\\n", "\n", regex=False)
    body = body.str.replace("\\r", "", regex=False).str.strip()
    videos = videos.assign(body=body, first=[SENTENCE_END.split(text, 1)[0] for text in body])
    n_words, n_first = (videos[name].str.split().str.len() for name in ("body", "first"))
    fits = n_first.between(*SENTENCE) & (n_words >= TIMES * n_first)
    return videos[fits].drop_duplicates("body").drop_duplicates("title")


def kept(columns: list[np.ndarray], weights: np.ndarray | list[float]) -> np.ndarray:
    return item_keys(lambda column: column, columns, weights)


def ndcg(queries: np.ndarray, keys: np.ndarray, answers: np.ndarray) -> float:
    """Of one answer to each query, (queries,): 1 / log₂(rank + 1)."""
    scores = queries @ keys.T
    own = scores[np.arange(len(scores)), answers][:, None]
    ranks = 1 + (scores > own).sum(axis=1)
    return float(np.where(ranks <= K, 1 / np.log2(ranks + 1), 0).mean())


PARTS = {"descriptions": descriptions, "talks": talks}

if __name__ == "__main__":
    main(__file__, PARTS)
