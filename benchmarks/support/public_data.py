"""The public data sets that `QKVSEARCH_DATA` points at, and sparse sets that are made here."""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.sparse import csr_matrix

from qkvsearch.tables.judgements import Judgements, Queries, read_judgements, read_queries

Split = tuple[csr_matrix, csr_matrix]


def data_folder() -> Path:
    if not os.environ.get("QKVSEARCH_DATA"):
        raise SystemExit("set QKVSEARCH_DATA to the folder that holds ml-100k, ml-1m, ted, …")
    return Path(os.environ["QKVSEARCH_DATA"])


# --- who interacted with what ---


def read_ratings(name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Users (n,), items (n,) as row numbers and ratings (n,) of a MovieLens set."""
    folder = data_folder() / name
    if name == "ml-100k":
        table = pd.read_csv(folder / "u.data", sep="\t", header=None)
    else:
        table = pd.read_csv(folder / "ratings.csv")
    users, items = (pd.factorize(table.iloc[:, column])[0] for column in (0, 1))
    return users, items, table.iloc[:, 2].to_numpy(np.float32)


def read_films() -> pd.DataFrame:
    """The films of MovieLens-1M: `item`, `title` and `genres`."""
    return pd.read_csv(
        data_folder() / "ml-1m" / "movies.dat",
        sep="::",
        engine="python",
        encoding="latin-1",
        names=["item", "title", "genres"],
    )


def read_purchases() -> csr_matrix:
    """Who bought which game on Steam, as a matrix of ones."""
    table = pd.read_csv(data_folder() / "steam" / "game_purchase.dat", sep="\t")
    users, items = (pd.factorize(table.iloc[:, column])[0] for column in (0, 1))
    ones = csr_matrix((np.ones(len(users), np.float32), (users, items)))
    ones.data[:] = 1  # games that were bought twice
    return ones


def read_views() -> csr_matrix:
    """Which visitors of RetailRocket's shop viewed which items, as a matrix of ones."""
    columns = ["visitor", "item"]
    path = data_folder() / "retailrocket" / "views.dat"
    table = pd.read_csv(path, sep="\t", usecols=[0, 1], names=columns, header=0)
    users, items = (pd.factorize(table[column])[0] for column in columns)
    views = csr_matrix((np.ones(len(users), np.float32), (users, items)))
    views.data[:] = 1
    return views


def read_positives(path: Path, shape: tuple[int, int] | None = None) -> csr_matrix:
    """A matrix of ones from lines `user item item …`."""
    lines = [np.array(line.split(), dtype=np.int32) for line in path.read_text().splitlines()]
    users = np.repeat([line[0] for line in lines], [len(line) - 1 for line in lines])
    items = np.concatenate([line[1:] for line in lines])
    return csr_matrix((np.ones(len(users), np.float32), (users, items)), shape=shape)


def split(matrix: csr_matrix, seed: int, share: float = 0.2) -> Split:
    """Without a random `share` of the entries, and these."""
    coo = matrix.tocoo()
    apart = np.random.default_rng(seed).random(coo.nnz) < share
    rest, held_out = (
        csr_matrix((coo.data[part], (coo.row[part], coo.col[part])), shape=coo.shape)
        for part in (~apart, apart)
    )
    return rest, held_out


def planted(n_users: int, n_items: int, length: float, topics: int, seed: int) -> csr_matrix:
    """A sparse set: users with one to three topics take items by power-law popularity in them."""
    rng = np.random.default_rng(seed)
    topic_of = rng.integers(topics, size=n_items)
    popularity = 1 / rng.permutation(np.arange(1, n_items + 1)) ** 0.8
    users, items = [], []
    for user in range(n_users):
        liked = rng.choice(topics, size=rng.integers(1, 4), replace=False)
        chance = popularity * np.where(np.isin(topic_of, liked), 1.0, 0.01)
        count = min(3 + rng.poisson(rng.lognormal(np.log(length), 0.8)), n_items // 4)
        items.append(rng.choice(n_items, size=count, replace=False, p=chance / chance.sum()))
        users.append(np.full(count, user))
    rows, columns = np.concatenate(users), np.concatenate(items)
    return csr_matrix((np.ones(len(rows), np.float32), (rows, columns)), shape=(n_users, n_items))


# --- texts with judged queries ---


@dataclass(frozen=True)
class JudgedTexts:
    """items: a frame with the columns id and title, and those of `text`, which are searched."""

    items: pd.DataFrame
    text: tuple[str, ...]
    queries: Queries
    judgements: Judgements


def ted(part: str) -> JudgedTexts:
    """Titles and tags of TED talks; the first sentence of a talk's description asks for it. part:
    the "dev" queries, by which defaults may be chosen, or the "test" queries.
    """
    folder = data_folder() / "ted"
    talks = pd.read_csv(folder / "talks.csv", keep_default_na=False, dtype=str)
    queries = read_queries(folder / f"queries_{part}.tsv")
    judgements = read_judgements(folder / f"qrels_{part}.tsv")
    return JudgedTexts(talks, ("title", "tags"), queries, judgements)


def cranfield() -> JudgedTexts:
    """Abstracts, judged by engineers; a grade above 0 is relevant."""
    folder = data_folder() / "cranfield"
    rows = [
        {"id": str(i), "title": text["T"] or "?", "body": text["W"]}
        for i, text in enumerate(_read_smart(folder / "cran.all.1400"), 1)
    ]
    # The judgements number the queries by their order.
    queries = {str(i): text["W"] for i, text in enumerate(_read_smart(folder / "cran.qry"), 1)}
    judgements: Judgements = {}
    with (folder / "cranqrel").open() as lines:
        for query, item, grade, *_ in map(str.split, lines):
            if int(grade) > 0:
                judgements.setdefault(query, {})[item] = 1
    return JudgedTexts(pd.DataFrame(rows), ("title", "body"), queries, judgements)


def cisi() -> JudgedTexts:
    """Abstracts of library science, judged by librarians."""
    folder = data_folder() / "cisi"
    items = pd.read_csv(folder / "items.csv", keep_default_na=False, dtype=str)
    queries = read_queries(folder / "queries.tsv")
    return JudgedTexts(items, ("title", "body"), queries, read_judgements(folder / "qrels.txt"))


def own_documents() -> dict[str, str]:
    """The document that each of Cranfield's queries was made from, which has the grade −1."""
    with (data_folder() / "cranfield" / "cranqrel").open() as lines:
        judged = [line.split()[:3] for line in lines]
    return {query: item for query, item, grade in judged if grade == "-1"}


def xquad_path(language: str) -> Path:
    """The file of XQuAD in a language, by its ISO code."""
    return data_folder() / "xquad" / f"{language}.json"


def xquad(language: str) -> JudgedTexts:
    """Paragraphs, and questions that one of them answers. language: see `xquad_path`."""
    articles = json.loads(xquad_path(language).read_text(encoding="utf-8"))["data"]
    rows: list[dict[str, str]] = []
    queries: Queries = {}
    judgements: Judgements = {}
    for article in articles:
        for paragraph in article["paragraphs"]:
            id_ = str(len(rows))
            rows.append({"id": id_, "body": paragraph["context"]})
            for asked in paragraph["qas"]:
                queries[asked["id"]] = " ".join(asked["question"].split())
                judgements[asked["id"]] = {id_: 1}
    return JudgedTexts(pd.DataFrame(rows), ("body",), queries, judgements)


def cranfield_with_sources() -> JudgedTexts:
    """The same, and it is also searched who wrote an abstract and where it appeared."""
    data = cranfield()
    records = _read_smart(data_folder() / "cranfield" / "cran.all.1400")
    items = data.items.assign(
        authors=[text["A"] for text in records], source=[text["B"] for text in records]
    )
    return replace(data, items=items, text=("title", "authors", "source", "body"))


def _read_smart(path: Path) -> list[dict[str, str]]:
    """The records of a file in SMART's layout: `.I` begins one, `.T` and `.W` its parts."""
    records = re.split(r"^\.I.*\n", path.read_text("latin-1"), flags=re.MULTILINE)[1:]
    return [
        {
            part[0]: " ".join(part[1:].split())
            for part in re.split(r"^\.(?=[A-Z]$)", record, flags=re.M)
            if part
        }
        for record in records
    ]
