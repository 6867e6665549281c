"""`--where`: conditions work as SQL says, and nothing but the catalog can be reached."""

import sqlite3
from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qkvsearch.errors import QkvError
from qkvsearch.tables.catalog_columns import CatalogColumns
from qkvsearch.where.guarded import TimeLimit, positions
from tests.store.conditions import matching_positions

# id: 4, 7, 8, 30, 100; year: 1999, 1950, 2004, 1995, none
ALL = [4, 7, 8, 30, 100]
YEAR = CatalogColumns.of([("year", "INTEGER")], [])
IDS = CatalogColumns.of([("id", "INTEGER")], [])


@pytest.fixture(scope="module")
def kept(catalog):
    """Ids of the items for which an expression holds."""
    return lambda expression: [
        id_ for id_, keep in zip(ALL, catalog.conditions.mask(expression), strict=True) if keep
    ]


@pytest.mark.parametrize(
    ("expression", "ids"),
    [
        ("year >= 1995", [4, 8, 30]),
        ("YEAR = 1995", [30]),
        ("year BETWEEN 1950 AND 1995", [7, 30]),
        ("year IS NULL", [100]),
        ("NOT year > 1990", [7]),
        ("id < 30", [4, 7, 8]),
        ("id IN (4, 100, 5)", [4, 100]),
        ("genres LIKE '%war%'", [8, 30]),
        ("genres LIKE '%War%' AND year > 2000 OR id = 7", [7, 8]),
        ("genres LIKE '%War%' AND (year > 2000 OR id = 7)", [8]),
        ("title GLOB 'A*'", [7, 8]),
        ("lower(title) LIKE 'anchor%' AND length(genres) = 5", [7]),
        ("score * 2 >= 6.0", [8, 30]),
        ("coalesce(score, 9) > 4", [7, 30]),
        ("score", [4, 8, 30, 100]),
        ("1 = 1", ALL),
        ("0", []),
        ("title = 'it''s :) -- SELECT'", []),
        ('"year" = 1995 OR [id] = 4 OR `id` = 7', [4, 7, 30]),
        ("year > 2000 -- the new ones", [8]),
        ("year > 2000 /* the new) ones */", [8]),
        ("CASE WHEN year > 2000 THEN 1 ELSE 0 END", [8]),
    ],
)
def test_conditions_hold_as_sql_says(kept, expression, ids):
    assert kept(expression) == ids


def test_an_unknown_column_in_double_quotes_is_not_taken_for_a_text(kept):
    with pytest.raises(QkvError, match=r"yeer \(texts .*; did you mean year\?"):
        kept('"yeer" > 5')
    assert kept('"Year" > 2000') == [8]


def test_an_unknown_column_is_named_with_the_nearest_and_all_others(kept):
    with pytest.raises(QkvError, match=r"no such column: yeer; did you mean year\?") as error:
        kept("yeer > 2000")
    assert "(columns: id, title, year, genres, score)" in str(error.value)


@pytest.mark.parametrize(
    "expression",
    ["", " ", "year >", "year => ", "(year > 1", "year > 1)", "'", '"', "year > 1 /*", "?", ":x",
     "\0", "\ud800", "year year", "max(year) > 1", "1=1 GROUP BY year", "x'zz'", "2e",
     "year > 1E"],
)  # fmt: skip
def test_what_is_no_condition_is_an_error_that_repeats_it(kept, expression):
    with pytest.raises(QkvError, match="`where`") as error:
        kept(expression)
    assert repr(expression) in str(error.value)


ATTACKS = """
id IN (SELECT 1 FROM sqlite_master)
id IN (SELECT _position FROM users)
EXISTS (SELECT 1 FROM titles WHERE key = 'kettle')
(SELECT count(*) FROM items a, items b, items c) > 0
id IN users
(0, 5) IN users
(id, title) IN folded
id IN (VALUES (4))
id IN (WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT x FROM c)
year > 1) UNION SELECT 99 WHERE (1
year > 1) UNION SELECT id FROM items WHERE (year > 1
1) UNION SELECT key FROM titles WHERE (1
1) UNION SELECT sql FROM sqlite_master WHERE (1
1) UNION VALUES (99) /*
1)/**/UNION/**/SELECT(99)WHERE(1
year > 1) LIMIT 1 /*
year > 1) --
')' = ')') OR (1
1; DROP TABLE items
1); DROP TABLE items; --
1; ATTACH 'other.db' AS other
ATTACH 'other.db' AS other
PRAGMA writable_schema = 1
pragma_table_info('items')
id IN pragma_table_list
id IN (DELETE FROM items)
DELETE FROM items
load_extension('x')
readfile('/etc/hosts')
randomblob(1000000000)
zeroblob(1000000000)
hex(title)
random() > 0
printf('%1000000000d', 1)
sqlite_version() > ''
CURRENT_TIMESTAMP > ''
titles.key = 'kettle'
""".strip().splitlines()


def guarded(catalog):
    """Positions by the guard alone, for expressions that the parser would refuse before."""

    def run(expression):
        with closing(catalog.segments[0].separate()) as db:
            used = {column.stored: column for column in catalog.catalog_columns}
            return positions(db, "items", used, expression, {}, TimeLimit())

    return run


# What the guard alone would run: it ends the condition, and still reaches nothing but the catalog.
# That it is one condition is checked before.
REACHES_THE_CATALOG_ALONE = """
id IN (VALUES (4))
year > 1) UNION SELECT 99 WHERE (1
year > 1) UNION SELECT id FROM items WHERE (year > 1
1) UNION VALUES (99) /*
1)/**/UNION/**/SELECT(99)WHERE(1
year > 1) LIMIT 1 /*
')' = ')') OR (1
""".strip().splitlines()


@pytest.mark.parametrize("expression", [a for a in ATTACKS if a not in REACHES_THE_CATALOG_ALONE])
def test_the_guard_alone_refuses_what_reaches_beyond_the_catalog(catalog, expression):
    with pytest.raises(QkvError):
        guarded(catalog)(expression)


@pytest.mark.parametrize("expression", ATTACKS)
def test_an_attack_is_refused_and_the_connection_stays_usable(catalog, kept, expression):
    with pytest.raises(QkvError, match="`where`"):
        kept(expression)
    assert kept("year > 2000") == [8]
    assert catalog.names([0])[0] == [4]
    assert catalog.users.position(12) == 1


def test_the_guard_also_holds_where_an_expression_was_allowed_before(catalog, kept):
    statement = 'SELECT _position FROM "items" WHERE (hex(title) > 0\n) ORDER BY _position'
    catalog.segments[0].db.execute(statement).fetchall()  # compiled without a guard, and cached
    with pytest.raises(QkvError, match="not authorized"):
        guarded(catalog)("hex(title) > 0")


PYTHON = {"<": int.__lt__, "<=": int.__le__, "=": int.__eq__, "!=": int.__ne__, ">": int.__gt__}


# Expressions beside the same ones in Python, where None is SQL's unknown.
atoms = st.tuples(st.sampled_from(list(PYTHON)), st.integers(1990, 1993)).map(
    lambda atom: (
        f"year {atom[0]} {atom[1]}",
        lambda year: None if year is None else PYTHON[atom[0]](year, atom[1]),
    )
) | st.just(("year IS NULL", lambda year: year is None))


def both(left, right):
    return False if False in (left, right) else None if None in (left, right) else True


def negated(value):
    return None if value is None else not value


def combined(parts):
    return (
        st.tuples(parts, parts).map(
            lambda p: (f"({p[0][0]}) AND ({p[1][0]})", lambda y: both(p[0][1](y), p[1][1](y)))
        )
        | st.tuples(parts, parts).map(
            lambda p: (
                f"({p[0][0]}) OR ({p[1][0]})",
                lambda y: negated(both(negated(p[0][1](y)), negated(p[1][1](y)))),
            )
        )
        | parts.map(lambda p: (f"NOT ({p[0]})", lambda y: negated(p[1](y))))
    )


@given(
    st.lists(st.none() | st.integers(1989, 1994), min_size=1, max_size=8),
    st.recursive(atoms, combined, max_leaves=6),
)
def test_conditions_joined_by_and_or_not_are_their_python_twins(years, condition):
    expression, holds = condition
    db = sqlite3.connect(":memory:")
    db.execute("CREATE TABLE items (_position INTEGER PRIMARY KEY, column_year INTEGER)")
    db.executemany("INSERT INTO items VALUES (?, ?)", enumerate(years))
    found = matching_positions(db, "items", YEAR, expression)
    db.close()
    assert found == [i for i, year in enumerate(years) if holds(year)]


def test_a_connection_is_as_free_after_a_condition_as_before():
    db = sqlite3.connect(":memory:")
    db.executescript("CREATE TABLE items (_position, id); INSERT INTO items VALUES (0, 7), (1, 8)")
    for expression, found in (("id > 7", [1]), ("random() > 0", None)):
        if found is None:
            with pytest.raises(QkvError):
                matching_positions(db, "items", IDS, expression)
        else:
            assert matching_positions(db, "items", IDS, expression) == found
        assert db.execute("SELECT abs(random()) >= 0 FROM sqlite_master").fetchall() == [(1,)]
