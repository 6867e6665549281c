"""Which column is which: guessed by usual names, told in any case, or asked for."""

from __future__ import annotations

import pandas as pd
import pytest

from qkvsearch.data.columns import find_column, find_text_columns, require_column
from qkvsearch.data.readers import read_dataset
from qkvsearch.errors import DataError


@pytest.mark.parametrize(
    ("role", "names", "found"),
    [
        ("id", ["title", "id"], "id"),
        ("id", ["Video ID", "title"], "Video ID"),
        ("id", ["movie-id", "item"], "movie-id"),
        ("title", ["Original_Title", "x"], "Original_Title"),
        ("user", ["movieId", "userId"], "userId"),
        ("item", ["userId", "movieId"], "movieId"),
        ("item", ["id", "item"], "item"),
        ("rating", ["SCORE"], "SCORE"),
        ("time", ["unix.review.time"], "unix.review.time"),
        ("rating", ["views"], None),
        ("weight", ["price", "Quantity"], "Quantity"),
        ("weight", ["price"], None),
    ],
)
def test_usual_names_are_found_without_case_spaces_and_dashes(role, names, found):
    assert find_column(role, None, names, "f.csv") == found


def test_of_two_equal_spellings_the_first_column_is_taken():
    assert find_column("user", None, ["User_ID", "userid"], "f.csv") == "User_ID"


@pytest.mark.parametrize("told", ["Film", "film", " FILM "])
def test_a_told_name_is_found_in_any_case(told):
    assert find_column("id", told, ["id", "Film"], "f.csv") == "Film"


def test_a_told_name_prefers_its_own_case():
    assert find_column("id", "film", ["Film", "film"], "f.csv") == "film"


def test_a_misspelt_name_is_refused_with_a_suggestion_option_and_columns():
    with pytest.raises(DataError, match=r"f\.csv: no column 'flim' \(`id_column`\)") as error:
        find_column("id", "flim", ["film", "year"], "f.csv")
    assert "did you mean film?" in str(error.value)
    assert "(columns: film, year)" in str(error.value)


def test_a_role_that_cannot_be_guessed_names_the_option():
    with pytest.raises(DataError, match=r"which column is the user; name it with `user_column`"):
        require_column("user", None, ["a", "b"], "f.csv")


def test_prose_columns_are_searched_title_first_in_order_of_weight():
    names = ["Description", "Tags", "views", "name"]
    assert find_text_columns(None, "name", names, "f.csv") == ["name", "Tags", "Description"]


def test_told_text_columns_keep_their_order_and_need_no_title():
    assert find_text_columns(["B", "a"], "title", ["title", "a", "b"], "f.csv") == ["b", "a"]


def test_a_misspelt_text_column_is_refused():
    with pytest.raises(DataError, match=r"no column 'tgas' \(`text_columns`\); did you mean tags"):
        find_text_columns(["tgas"], "title", ["title", "tags"], "f.csv")


def test_of_several_ids_that_of_the_interactions_is_taken():
    items = pd.DataFrame(
        {"ean": [4001, 4002, 4003], "sku": ["a-1", "a-2", "a-3"], "name": list("xyz")}
    )
    log = pd.DataFrame({"user": ["u", "u", "v"], "sku": ["a-1", "a-3", "gone"]})
    dataset = read_dataset(items, log)
    assert dataset.catalog.ids.texts == ["a-1", "a-2", "a-3"]
    assert "id = sku (by the items of the interactions)" in dataset.reports[0].chosen
    assert read_dataset(items, None).catalog.ids.texts == ["4001", "4002", "4003"]
