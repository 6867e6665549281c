"""What a person can name as a source, each taken for what it is."""

import pandas as pd
import pytest

from qkvsearch.errors import DataError
from qkvsearch.tables.sources import read_source


@pytest.fixture
def catalog(tmp_path):
    path = tmp_path / "items.csv"
    path.write_text("id,title,author\n1,kettle,ann\n2,anchor,bob\n")
    return path


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("user,item\nann,1\nbob,3\n")
    return path


def test_samples_are_read_by_name():
    assert read_source("sample:videos").interactions.ratings is None
    assert len(read_source("sample:movies").interactions) > 100


def test_an_unknown_sample_lists_those_there_are():
    with pytest.raises(DataError, match="no sample 'vidoes'; there are sample:videos, sample:mov"):
        read_source("sample:vidoes")


def test_a_folder_is_read_as_movielens(tmp_path):
    (tmp_path / "u.data").write_text("5\t1\t4\t100\n")
    (tmp_path / "movies.dat").write_text("1::Teapot (1995)::War\n")
    dataset = read_source(str(tmp_path))
    assert list(dataset.catalog.ids) == [1]
    assert len(dataset.interactions) == 1


def test_a_file_with_titles_is_a_catalog(catalog):
    dataset = read_source(str(catalog))
    assert dataset.catalog.frame["title"].tolist() == ["kettle", "anchor"]
    assert dataset.interactions is None


def test_a_file_with_users_and_no_titles_is_a_log(log):
    dataset = read_source(log)
    assert list(dataset.interactions.user_ids) == ["ann", "bob"]
    assert list(dataset.catalog.ids) == [1, 3]


@pytest.mark.parametrize("as_source", ["items", "interactions"])
def test_a_source_is_completed_by_the_other_file(catalog, log, as_source):
    if as_source == "items":
        dataset = read_source(catalog, interactions=log)
    else:
        dataset = read_source(log, items=catalog)
    assert list(dataset.catalog.ids) == [1, 2]
    assert len(dataset.interactions) == 1


def test_frames_are_sources_too():
    assert len(read_source(pd.DataFrame({"user": [1], "item": [2]})).interactions) == 1
    assert read_source(pd.DataFrame({"id": [1]})).interactions is None


def test_orders_with_ids_and_names_of_their_own_are_a_log(tmp_path):
    path = tmp_path / "orders.csv"
    path.write_text("id,name,customer,product_id,ordered_at\n1,Ann,c1,7,2024-03-01\n2,Bob,c2,8,\n")
    assert len(read_source(path).interactions) == 2


def test_addresses_in_a_table_of_things_make_no_log_of_it(tmp_path):
    path = tmp_path / "shops.csv"
    path.write_text("id,name,contact\n1,Ann's,a@x.org\n2,Bob's,b@x.org\n")
    assert read_source(path).interactions is None
