"""Uncertain dates, and years before 1000 and before our era: read, compared, counted and sorted."""

import pandas as pd
import pytest

import qkvsearch
from qkvsearch.engine import Engine
from qkvsearch.learn.add import add_items
from qkvsearch.learn.merge import merge_segments
from qkvsearch.store import Workspace
from qkvsearch.tables.column_types.date import DateType
from qkvsearch.tables.column_types.inference import typed
from qkvsearch.tables.columns.uncertain_dates import read_uncertain
from qkvsearch.tables.date_spans import earliest, latest, sort_key, span_of

MADE = {
    "circa": "c. 1890",
    "decade": "1890s",
    "century": "19th century",
    "bce": "500 BCE",
    "range": "1640–50",
    "none": "n.d.",
    "before": "before 1700",
    "after": "after 1950",
    "day": "1901-03-05",
    "early": "850",
} | {f"y{year}": str(year) for year in range(1850, 1990, 7)}


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    items = pd.DataFrame({"id": list(MADE), "title": [f"Vase {id_}" for id_ in MADE]})
    items["made"] = list(MADE.values())
    items["acquired"] = [f"19{n + 20}-03-01" for n in range(len(MADE))]
    path = tmp_path_factory.mktemp("museum") / "ws"
    qkvsearch.build(path, items=items, encoder="corpus").close()
    return path


@pytest.fixture(scope="module")
def engine(path):
    with Engine(path) as engine:
        yield engine


def ids(engine, where):
    """The items for which a condition holds, without the plain years."""
    rows = engine.items.list(where=where).rows
    return {row["id"] for row in rows if not row["id"].startswith("y")}


def years(engine, where):
    rows = engine.items.list(where=where).rows
    return {int(row["id"][1:]) for row in rows if row["id"].startswith("y")}


# --- one cell ---


@pytest.mark.parametrize(
    ("text", "stored"),
    [
        ("1890", "1890"),
        ("850", "0850"),
        ("-0499", "-0499"),
        ("500 BCE", "-0499"),
        ("1 B.C.", "0000"),
        ("c. 44 BC", "-0053/-0033"),
        ("AD 79", "0079"),
        ("AD 1", "0001"),
        ("206 BCE-220 CE", "-0205/0220"),
        ("480-256 BCE", "-0479/-0255"),
        ("5th-4th century BCE", "-0499/-0300"),
        ("circa 1700", "1690/1710"),
        ("©1903", "1903"),
        ("b. 1890", "1890"),
        ("Born 1890", "1890"),
        ("b. 1890 - d. 1950", "1890/1950"),
        ("fl. 1850–1870", "1850/1870"),
        ("1890-present", "1890/.."),
        ("c. 1890 – present", "1880/.."),
        ("1890 to the present", "1890/.."),
        ("1949年至今", "1949/.."),
        ("ca. 1640–1650", "1630/1660"),
        ("1890?", "1880/1900"),
        ("1890 ± 5", "1885/1895"),
        ("c. 1890 (+/- 3 years)", "1887/1893"),
        ("1890s", "1890/1899"),
        ("1800s", "1800/1899"),
        ("2000s", "2000/2009"),
        ("1920s-30s", "1920/1939"),
        ("mid-1960s", "1963/1966"),
        ("19th century", "1801/1900"),
        ("early 19th century", "1801/1840"),
        ("late 18th-early 19th century", "1761/1840"),
        ("16th-17th century", "1501/1700"),
        ("second half of the 19th century", "1851/1900"),
        ("17th c.", "1601/1700"),
        ("1890-95", "1890/1895"),
        ("1851/52", "1851/1852"),
        ("between 1890 and 1900", "1890/1900"),
        ("before 1900", "../1899"),
        ("1922 or earlier", "../1922"),
        ("after 1850", "1851/.."),
        ("Edo period (1603-1867)", "1603/1867"),
        ("1953, printed 1970", "1953/1970"),
        ("May 1953", "1953-05"),
        ("约1890年", "1880/1900"),
        ("19世纪", "1801/1900"),
        ("十九世纪末", "1861/1900"),
        ("19世纪90年代", "1890/1899"),
        ("十九世纪90年代", "1890/1899"),
        ("19世纪九十年代", "1890/1899"),
        ("公元前500年", "-0499"),
        ("公元前1200–1100年", "-1199/-1099"),
        ("公元前50–20年", "-0049/-0019"),
        ("公元前206–220年", "-0205/0220"),
        ("公元前5–4世纪", "-0499/-0300"),
        ("1890年前后", "1880/1900"),
        ("um 1890", "1880/1900"),
        ("18./19. Jh.", "1701/1900"),
        ("Ende des 19. Jahrhunderts", "1861/1900"),
        ("44 v. Chr.", "-0043"),
        ("début du XIXe siècle", "1801/1840"),
        ("50 av. J.-C.", "-0049"),
        ("XIX век", "1801/1900"),
        ("1880/1900", "1880/1900"),
        ("-0499/-0400", "-0499/-0400"),
        ("1850-03/..", "1850-03-01/.."),
    ],
)
def test_a_cell_is_the_years_that_it_may_be(text, stored):
    reading = read_uncertain(text)
    assert reading is not None
    assert reading.stored == stored
    assert span_of(stored) is not None


@pytest.mark.parametrize(
    "text",
    [
        *("AD 0", "0 BC"),
        *("", "12", "4821", "1,890", "$1890", "10 sec.", "120s", "5 cent", "18th Dynasty"),
        *("1640-1630", "3/24/1929", "1.5", "22nd century", "one of five rather long lines of 1890"),
    ],
)
def test_other_cells_are_no_dates(text):
    assert read_uncertain(text) is None


def test_ends_and_order_of_spans():
    cells = ["-0499/-0400", "-0043", "../1899", "0850", "1850", "1850-03"]
    assert [earliest(cell) for cell in cells[3:]] == ["0850-01-01", "1850-01-01", "1850-03-01"]
    assert [latest(cell) for cell in cells[3:]] == ["0850-12-31", "1850-12-31", "1850-03-31"]
    order = sorted(cells, key=sort_key)
    assert order == ["../1899", "-0499/-0400", "-0043", "0850", "1850", "1850-03"]
    starts = [span_of(cell).first for cell in order]
    assert starts == sorted(starts)


# --- a column ---


@pytest.mark.parametrize(
    ("cells", "type_name"),
    [
        (["c. 1890", *map(str, range(1900, 1999))], "date"),
        (["500 BCE", *map(str, range(1900, 1999))], "date"),
        (["-0499", "0850", "1066"], "date"),
        (["©1903", "1904", "1905"], "date"),
        (["b. 1890", "fl. 1900", "1890-present"], "date"),
        (["1640-50", "1701", "1702"], "date"),
        (["1850", "1851", "n.d."], "number"),
        (["约1850年", "1851年", "无纪年"], "date"),
        (["1850", "850", "1066"], "number"),
        (["1000-1500", "1500-2000"], "text"),
        (["about 1500", "about 200", "c. 20", "100"], "text"),
        (["Blade 1982", "Dune 2021"], "text"),
        (["06.16.2", "79.66.115"], "text"),
    ],
)
def test_a_column_is_dates_where_it_says_so(cells, type_name):
    assert typed(pd.Series(cells, dtype=object)).type == type_name


def test_lengths_of_time_are_no_centuries():
    assert typed(pd.Series(["10 sec.", "20 sec."], dtype=object)).type != "date"


def test_days_before_1000_are_days_and_the_day_of_no_date_is_none():
    column = typed(pd.Series(["0385-12-31", "31.12.0999", "1890-05-01"]))
    assert (column.type, column.convention) == ("date", "")
    assert column.cells.tolist() == ["0385-12-31", "0999-12-31", "1890-05-01"]
    column = typed(pd.Series(["0001-01-01", "2024-01-01"]), "date")
    assert column.cells.isna().tolist() == [True, False]


def test_hyphens_are_months_unless_the_column_writes_ranges_so():
    def cells(*texts):
        return typed(pd.Series(texts), "date").cells.tolist()

    assert cells("c. 1900", "1910-12") == ["1890/1910", "1910-12"]
    assert cells("1890-95", "1910-12") == ["1890/1895", "1910/1912"]


@pytest.mark.parametrize(
    ("cells", "first"),
    [
        (["1900-10", "1901", "1950", "1890"], "1900/1910"),
        (["1900-10", "1901", "c. 1890", "1899"], "1900/1910"),
        (["1900-10", "1901", "1901-01", "1890"], "1900-10-01"),
        (["1900-10", "1901", "1890", "1901-05-03"], "1900-10-01"),
        (["1900-10", "1900-11", "1900-12", "1901"], "1900-10-01"),
    ],
)
def test_two_digits_behind_a_year_are_a_range_beside_years(cells, first):
    assert typed(pd.Series(cells)).cells[0] == first


@pytest.mark.parametrize(
    ("text", "stored"),
    [
        ("1890s-1900s", "1890/1909"),
        ("1900s–1920s", "1900/1929"),
        ("c. 1890s–1900s", "1880/1919"),
        ("1800s–1900s", "1800/1999"),
        ("1900s", "1900/1999"),
    ],
)
def test_a_decade_beside_another_one_is_ten_years(text, stored):
    assert read_uncertain(text).stored == stored


def test_exact_days_stay_beside_uncertain_dates():
    column = typed(pd.Series(["12 March 1890", "3/24/1929", "1850", "c. 1700"]))
    assert column.cells.tolist() == ["1890-03-12", "1929-03-24", "1850", "1690/1710"]
    assert column.changed["circa read as 10 years either way"] == 1


# --- conditions ---


def test_conditions_match_what_may_be(engine):
    assert ids(engine, "made = '1895'") == {"circa", "decade", "century"}
    assert ids(engine, "made = '1901'") == {"day"}
    assert ids(engine, "made = '1901-04'") == set()
    assert ids(engine, "made < '0001'") == {"bce", "before"}
    assert ids(engine, "made >= '1700' AND made < '1850'") == {"century"}
    assert ids(engine, "made BETWEEN '1641' AND '1645'") == {"range", "before"}
    assert ids(engine, "made > '1901'") == {"after"}
    assert ids(engine, "'1640' > made") == {"bce", "before", "early"}
    assert ids(engine, "made IS NULL") == {"none"}
    assert ids(engine, "made IN ('1645', '0850')") == {"range", "early", "before"}
    dated = ids(engine, "made IS NOT NULL")
    assert ids(engine, "NOT made = '1895'") == dated - {"circa", "decade", "century"}
    assert years(engine, "made >= '1980' OR made = '1850'") == {1850, 1983}


def test_conditions_take_dates_as_people_write_them(engine):
    assert ids(engine, "made = '19th century'") == {"circa", "decade", "century"}
    assert ids(engine, ("made <= ?", ["500 BCE"])) == {"bce", "before"}
    with pytest.raises(qkvsearch.QkvError, match="made"):
        ids(engine, "made = 'soon'")
    with pytest.raises(qkvsearch.QkvError, match="acquired"):
        ids(engine, "acquired = '19th century'")


def test_two_columns_are_compared_by_what_may_be(engine):
    assert ids(engine, "made > acquired") == {"after"}
    assert ids(engine, "MADE > \"acquired\" AND made < '1960'") == {"after"}
    assert "after" in ids(engine, "acquired < made")


# --- facets, queries, order ---


def test_a_value_of_a_facet_finds_as_many_items_as_it_counts(engine):
    counts = engine.items.facets(["made"])["made"]
    assert sum(counts.values()) >= 20
    assert counts["1801..1900"] == 3 + len([year for year in range(1850, 1990, 7) if year <= 1900])
    column = engine.catalog.catalog_columns.find("made")
    for value, n in counts.items():
        condition = DateType().condition("made", value, [])
        assert len(engine.items.list(where=condition).rows) == n
        assert len(engine.search(f"made:{value}", k=100).hits) == n
    assert column.is_uncertain


def test_a_column_of_few_years_is_counted_by_decade():
    cells = ["1893", "1880/1900", "1851/.."]
    counts = DateType().counted(dict.fromkeys(cells, 1), [*cells, None], "")
    assert counts == {"1850..1859": 1, "1860..1869": 1, "1870..1879": 1} | {
        "1880..1889": 2,
        "1890..1899": 3,
        "1900..1909": 2,
    }


def test_ordinary_dates_are_counted_by_year_as_before():
    cells = ["2024-03-01", "2023-05-06 10:00:00"]
    assert DateType().counted(dict.fromkeys(cells, 2), cells, "") == {"2023": 2, "2024": 2}


def test_sorting_is_by_the_first_day(engine):
    rows = engine.items.list(sort="made", k=6).rows
    assert [row["id"] for row in rows] == ["before", "bce", "early", "range", "century", "y1850"]


# --- what is added later ---


def test_added_cells_are_read_as_those_of_the_column(path, tmp_path):
    items = pd.DataFrame({"id": ["a", "b"], "title": ["Bowl", "Coin"]})
    dates = pd.DataFrame({"made": ["2020-01-01", "2021-05-06"]})
    folder = tmp_path / "ws"
    qkvsearch.build(folder, items=items.join(dates), encoder="corpus").close()
    added = pd.DataFrame({"id": ["c", "d"], "title": ["Cup", "Jug"], "made": ["c. 1890", "1900"]})
    workspace = Workspace(folder)
    add_items(workspace, added)
    for _ in range(2):
        with Engine(folder) as engine:
            assert engine.show("c")["made"] == "1880/1900"
            assert engine.show("c")["original"] == {"made": "c. 1890"}
            assert ids(engine, "made < '1885'") == {"c"}
            assert ids(engine, "made = '2021-05'") == {"b"}
        merge_segments(workspace)


def test_of_several_rows_the_earliest_date_is_shown_and_each_is_found(tmp_path):
    rows = pd.DataFrame(
        {
            "id": ["a", "a", "b", "c"],
            "title": ["Coin", "Coin", "Vase", "Bowl"],
            "made": ["44 BC", "500 BC", "c. 1890", "1901"],
        }
    )
    with qkvsearch.build(tmp_path / "ws", items=rows, encoder="corpus") as engine:
        card = engine.show("a")
        assert (card["made"], card["made of variants"]) == ("-0499", "-0499, -0043")
        assert ids(engine, "made = '44 BC'") == {"a"}
        assert ids(engine, "made < '0001'") == {"a"}


# --- the words of dates ---


@pytest.fixture(scope="module")
def dynasties(tmp_path_factory):
    plain = {str(n): f"{n}" for n in range(1800, 1830)}
    dates = plain | {
        "a": "Song dynasty (960–1279)",
        "b": "清乾隆",
        "c": "18th century",
        "d": "c. 1890",
    }
    titles = {"a": "Bowl", "b": "Vase", "c": "Clock", "d": "Horse"}
    items = pd.DataFrame({"id": list(dates), "title": [titles.get(i, f"Thing {i}") for i in dates]})
    items["made"] = list(dates.values())
    path = tmp_path_factory.mktemp("dynasties") / "ws"
    qkvsearch.build(path, items=items, encoder="corpus").close()
    return path


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("song dynasty bowl", "a"),
        ("清乾隆", "b"),
        ("18th century", "c"),
        ('made:"song dynasty"', "a"),
    ],
)
def test_the_words_of_a_date_are_searched_and_found(dynasties, query, first):
    with Engine(dynasties) as engine:
        assert [hit.id for hit in engine.search(query, k=1)] == [first]
        assert {column["name"]: column["type"] for column in engine.info()["columns"]}[
            "made"
        ] == "date"


def test_a_searched_date_is_compared(dynasties):
    with Engine(dynasties) as engine:
        assert {hit.id for hit in engine.search("made:1000")} == {"a"}
        assert ids_of(engine, "made < '1300'") == {"a"}


def ids_of(engine, where):
    return {row["id"] for row in engine.items.list(where=where).rows}


def test_a_date_whose_words_change_is_found_by_the_new_ones(dynasties):
    changed = pd.DataFrame({"id": ["d"], "title": ["Horse"], "made": ["Tang dynasty, 8th century"]})
    add_items(Workspace(dynasties), changed)
    with Engine(dynasties) as engine:
        assert [hit.id for hit in engine.search("tang dynasty", k=1)] == ["d"]
    merge_segments(Workspace(dynasties))
    with Engine(dynasties) as engine:
        assert [hit.id for hit in engine.search("tang dynasty", k=1)] == ["d"]


def test_dates_without_other_words_are_not_searched(engine):
    assert all(
        column["role"] != "text" for column in engine.info()["columns"] if column["name"] == "made"
    )
