"""The catalog before anybody has asked for anything: in order, counted, and by what columns."""

import shutil

import pandas as pd
import pytest

import qkvsearch
from qkvsearch.errors import QkvError
from qkvsearch.tables.column_types.number import counted_numbers

FRAME = pd.DataFrame(
    {
        "id": [f"i{n:02}" for n in range(12)],
        "title": [f"thing {n}" for n in range(12)],
        "Price": [3, None, 10, 2, 10, 2.5, None, 1, 40, 7, 8, 9],
        "colour": [
            "red", "Blue", "blue", None, "Red", "green", "red", "red", "red", "blue", None, "red",
        ],
        "genres": ["a|b", "a", "b", "a|c", None, "c", "a", "a|b", "b", "c", "a", "a"],
        "about": [f"a text much too long to be what one would click on {n}" for n in range(12)],
        "code": [f"https://shop.example/{n % 3}" for n in range(12)],
        "sold": ["yes", "no"] * 6,
        "maker": [f"maker {n}" for n in range(12)],
        "shape": ["round"] * 12,
        "product_number": range(12),
        "added": pd.date_range("2024-01-28", periods=12).astype(str),
        "checked": pd.date_range("2020-01-01", periods=12).astype(str),
    }
)  # fmt: skip
LOG = pd.DataFrame(
    {"user": list("aabbccd"), "item": ["i05", "i07", "i05", "i02", "i05", "i07", "i09"]}
)


@pytest.fixture(scope="module")
def things_path(tmp_path_factory):
    path = tmp_path_factory.mktemp("things") / "w"
    qkvsearch.build(path, items=FRAME, interactions=LOG).close()
    return path


@pytest.fixture
def things(things_path, tmp_path):
    return qkvsearch.open(shutil.copytree(things_path, tmp_path / "things"))


def numbers(listing):
    return [int(row["id"][1:]) for row in listing]


# --- order ---


def test_by_a_number_the_least_first_and_what_has_none_last(things):
    assert numbers(things.items.list(sort="price")) == [7, 3, 5, 0, 9, 10, 11, 2, 4, 8, 1, 6]
    assert numbers(things.items.list(sort="-Price")) == [8, 2, 4, 11, 10, 9, 0, 5, 3, 7, 1, 6]


def test_by_a_text_whatever_its_capitals(things):
    assert numbers(things.items.list(sort="colour")) == [1, 2, 9, 5, 0, 4, 6, 7, 8, 11, 3, 10]
    assert numbers(things.items.list(sort="-colour")) == [0, 4, 6, 7, 8, 11, 5, 1, 2, 9, 3, 10]


def test_by_a_date_with_a_condition_and_in_pages(things):
    listing = things.items.list(sort="-added", where="price > 5", k=3, offset=1, fields="price")
    assert numbers(listing) == [10, 9, 8]
    assert (listing.total, listing.offset) == (6, 1)
    assert listing[0] == {"id": "i10", "title": "thing 10", "Price": 8}


def test_ids_of_whole_numbers_are_sorted_ascounted_numbers(tmp_path):
    frame = pd.DataFrame({"id": [10, 9, 100], "title": ["ten", "nine", "hundred"]})
    engine = qkvsearch.build(tmp_path / "w", items=frame)
    assert [row["id"] for row in engine.items.list(sort="id")] == [9, 10, 100]


def test_what_most_know_is_first_those_recorded_since_included(things):
    assert numbers(things.items.list(sort="users", k=4)) == [5, 7, 2, 9]
    for user, item in [("a", "i05"), ("new", "i09"), ("new", "i09"), ("b", "i09"), ("new", "i03")]:
        things.record(user, item)
    assert numbers(things.items.list(sort="users", k=5)) == [5, 9, 7, 2, 3]
    fewest = things.items.list(sort="-users")
    assert sorted(numbers(fewest[-2:])) == [5, 9]
    counts = things.current_build.histories.user_counts
    assert counts.tolist() == [things.show(f"i{n:02}")["users"] for n in range(12)]


def test_where_nobody_is_known_it_is_said(tmp_path):
    engine = qkvsearch.build(tmp_path / "w", items=FRAME)
    listing = engine.items.list(sort="users")
    assert numbers(listing) == list(range(12))
    assert listing.notes == ["`sort`: there are no interactions with these items."]


@pytest.mark.parametrize(
    ("sort", "near"), [("prise", "Price"), ("-colours", "colour"), ("user", "users"), ("", "users")]
)
def test_a_column_that_is_not_there_is_told_with_near_ones(things, sort, near):
    with pytest.raises(QkvError, match=rf"`sort`: no column .*{near}"):
        things.items.list(sort=sort)


def test_the_command_sorts(qkv, things_path):
    answer = qkv("-w", things_path, "items", "--sort", "-price", "-k", 2, "--format", "csv")
    assert answer.stdout.split() == ["id,title", "i08,thing", "8", "i02,thing", "2"]
    answer = qkv("-w", things_path, "items", "--sort", "nothing")
    assert answer.code == 1
    assert "--sort: no column 'nothing'" in answer.stderr


# --- facets ---


@pytest.mark.parametrize("step", [0.1, 0.05, 0.7, 3.3])
def test_a_range_of_a_facet_counts_what_it_says(step):
    numbers = [round(3 + step * n, 10) for n in range(40)]
    for shown, n in counted_numbers(dict.fromkeys(numbers, 1), whole=False).items():
        least, most = map(float, shown.split(".."))
        assert n == sum(least <= number < most for number in numbers), shown
    whole = [int(10 * number) ** 3 for number in numbers]
    for shown, n in counted_numbers(dict.fromkeys(whole, 1)).items():
        least, most = map(float, shown.split(".."))
        assert n == sum(least <= number <= most for number in dict.fromkeys(whole)), shown


@pytest.mark.parametrize("start", [10**16, 10**17 + 3, 1_700_000_000_000_000_000, -(10**18)])
@pytest.mark.parametrize("step", [1, 7, 10**6])
def test_numbers_of_many_digits_are_all_counted(start, step):
    counts = dict.fromkeys(range(start, start + 60 * step, step), 1)
    assert sum(counted_numbers(counts).values()) == 60
    tiny = {1 + n * 2.0**-52: 1 for n in range(60)}
    assert sum(counted_numbers(tiny, whole=False).values()) == 60


def test_facets_are_those_of_a_search_that_finds_all(things):
    names = ["colour", "genres", "sold", "Price", "added"]
    found = things.items.facets(names)
    assert found == things.search("thing", facets=names, anyway=True).facets
    assert found["genres"] == {"a": 7, "b": 4, "c": 3}
    assert found["sold"] == {"no": 6, "yes": 6}
    assert found["added"] == {"2024-01": 4, "2024-02": 8}
    assert sum(found["Price"].values()) == 10


def test_facets_of_some_items_are_those_of_a_search_for_them(things):
    found = things.items.facets("colour,sold", where="price > 5")
    search = things.search("thing", facets="colour,sold", where="price > 5", anyway=True)
    assert found == search.facets
    assert found["sold"] == {"yes": 4, "no": 2}
    with pytest.raises(QkvError, match="`columns`: no column 'color'"):
        things.items.facets("color")


def test_the_columns_worth_counting(things):
    assert things.items.facet_columns() == ["genres", "colour", "Price", "added", "checked", "sold"]


def test_a_text_of_many_values_is_worth_counting_where_each_is_on_five_items(tmp_path):
    frame = pd.DataFrame(
        {
            "id": range(400),
            "title": [f"thing {n}" for n in range(400)],
            "often": [f"kind {n % 80}" for n in range(400)],
            "seldom": [f"kind {n % 81}" for n in range(400)],
            "late": ["short"] * 399 + ["a value that is so long that nobody would click on it"],
        }
    )
    assert qkvsearch.build(tmp_path / "w", items=frame).items.facet_columns() == ["often"]


@pytest.mark.parametrize(
    ("columns", "found"),
    [
        ({"checked": "date", "added": "date"}, "added"),
        ({"Erscheinungsdatum": "date", "geprüft": "date"}, "Erscheinungsdatum"),
        ({"checked": "date", "year": "number"}, "checked"),
        ({"checked": "date", "seen": "date", "release_year": "number"}, "release_year"),
        ({"checked": "date", "seen": "date"}, None),
        ({"price": "number"}, None),
    ],
    ids=str,
)
def test_which_column_says_when_an_item_came(tmp_path, columns, found):
    cells = {"date": pd.date_range("2024-01-28", periods=12).astype(str), "number": range(12)}
    frame = FRAME[["id", "title"]].assign(**{name: cells[kind] for name, kind in columns.items()})
    engine = qkvsearch.build(tmp_path / "w", items=frame)
    assert engine.items.newest_column() == found


def test_fields_are_named_as_a_condition_names_them(tmp_path):
    frame = pd.DataFrame(
        {"id": ["a"], "title": ["Vase"], "Date made": ["1890"], "Size, cm": ["4"], 'A "b"': ["x"]}
    )
    with qkvsearch.build(tmp_path / "w", items=frame, encoder="corpus") as engine:
        asked = '"date made", "Size, cm","A ""b"""'
        row = {"id": "a", "title": "Vase", "Date made": 1890, "Size, cm": 4, 'A "b"': "x"}
        assert list(engine.items.list(fields=asked, sort='-"Date made"')) == [row]
        assert engine.search("vase", facets='"Date made"').facets == {"Date made": {"1890": 1}}
        with pytest.raises(QkvError, match="did you mean Date made"):
            engine.items.list(fields='"Dat made"')
