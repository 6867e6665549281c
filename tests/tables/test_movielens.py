"""Folders in each MovieLens layout, with films that do not exist."""

import pytest

from qkvsearch.errors import DataError
from qkvsearch.tables.sources import GENRES, read_movielens

FILES = {
    "movies.csv": "movieId,title,genres\n"
    '1,"Teapot, The (1995)",Animation|Comedy\n2,Été (1980),War\n',
    "ratings.csv": "userId,movieId,rating,timestamp\n5,1,4.5,100\n6,2,1,90\n6,9,3,90\n",
    "tags.csv": "userId,movieId,tag,timestamp\n5,1,cosy,1\n6,1,Steam,2\n5,1,steam,3\n5,7,lost,3\n",
    "u.item": "1|Teapot, The (1995)|01-Jan-1995||http://x/?a|0|0|0|1|0|1" + "|0" * 13 + "\n"
    "2|Été (1980)|||" + "|0" * 17 + "|1|0\n",
    "u.data": "5\t1\t4\t100\n6\t2\t1\t90\n6\t9\t3\t90\n",
    "movies.dat": "1::Teapot, The (1995)::Animation|Comedy\n2::Été (1980)::War\n",
    "ratings.dat": "5::1::4::100\n6::2::1::90\n6::9::3::90\n",
    "ranked": "user,item,rating,time_rank_in_user\n5,1,4,1\n6,2,1,1\n6,9,3,2\n",
}


def folder(path, *names):
    for name in names:
        encoding = "utf-8" if name.endswith(".csv") else "latin-1"
        target = path / ("ratings.csv" if name == "ranked" else name)
        target.write_text(FILES[name], encoding=encoding)
    return path


@pytest.mark.parametrize(
    "layout",
    [
        ("ratings.csv", "movies.csv"),
        ("u.data", "u.item"),
        ("ratings.dat", "movies.dat"),
        ("ranked", "movies.dat"),
    ],
    ids=" ".join,
)
def test_every_layout_gives_the_same_films_and_ratings(tmp_path, layout):
    dataset = read_movielens(folder(tmp_path, *layout))
    frame, log = dataset.catalog.frame, dataset.interactions
    assert list(dataset.catalog.ids) == [1, 2]
    assert frame["title"].tolist() == ["Teapot, The (1995)", "Été (1980)"]
    assert frame["genres"].tolist() == ["Animation|Comedy", "War"]
    assert frame["year"].tolist() == [1995, 1980]
    assert dataset.catalog.text_columns == ("title", "genres")
    assert list(log.user_ids) == [5, 6]
    assert (log.users.tolist(), log.items.tolist()) == ([0, 1], [0, 1])
    assert log.ratings.tolist() == [4.5 if layout[0] == "ratings.csv" else 4, 1]
    assert log.times_comparable == (layout[0] != "ranked")
    assert [report.read for report in dataset.reports] == [2, 3]
    assert dataset.reports[1].skipped == {"with an item that is not in the catalog": 1}


@pytest.mark.parametrize(("place", "genre"), [(0, "unknown"), (10, "Film-Noir"), (18, "Western")])
def test_flags_of_u_item_are_the_genres_in_their_published_order(tmp_path, place, genre):
    flags = ["1" if i == place else "0" for i in range(len(GENRES))]
    folder(tmp_path, "u.data")
    (tmp_path / "u.item").write_text("|".join(["1", "Teapot (1995)", "", "", "", *flags]) + "\n")
    assert read_movielens(tmp_path).catalog.frame["genres"].tolist() == [genre]


def test_tags_join_the_text_the_most_used_first_without_case(tmp_path):
    catalog = read_movielens(folder(tmp_path, "ratings.csv", "movies.csv", "tags.csv")).catalog
    assert catalog.text_columns == ("title", "genres", "tags")
    assert catalog.texts() == [
        "Teapot, The (1995)\nAnimation Comedy\nsteam cosy",
        "Été (1980)\nWar\n",
    ]


def test_a_folder_with_neither_file_names_what_it_looked_for(tmp_path):
    with pytest.raises(DataError, match=r"ratings\.csv, ratings\.dat, u\.data") as error:
        read_movielens(tmp_path)
    assert "`items` and `interactions`" in str(error.value)


def test_a_folder_without_films_names_what_it_looked_for(tmp_path):
    with pytest.raises(DataError, match=r"movies\.csv, movies\.dat, u\.item"):
        read_movielens(folder(tmp_path, "ratings.csv"))
