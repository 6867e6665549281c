"""The owner's names of columns mean nothing to the store or to SQLite."""

import shutil

import pandas as pd
import pytest

import qkvsearch as qkv
from qkvsearch.errors import QkvError

# Names that SQLite, the tables of a segment or the JSON of a hit use for something of their own.
NUMBERS = "rowid OID _position position items titles score match level_0 order values $v".split()
TEXTS = "_rowid_ ROWID_2 key value variants users rank weight index group column_id a.b".split()
WORDS_OF_SQL = ["order", "group", "values", "index"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A workspace of five items, of which one has two variants, in two segments."""
    items = pd.DataFrame(
        [
            {"id": f"i{row}", "title": f"Kettle {'abcdef'[row]}"}
            | dict.fromkeys(NUMBERS, 10 * row + 0.5)
            | dict.fromkeys(TEXTS, f"cell {row} of a kettle")
            for row in (0, 1, 2, 3, 4)
        ]
    )
    variant = items.iloc[[2]].assign(**dict.fromkeys(NUMBERS, 99.5))
    folder = tmp_path_factory.mktemp("names") / "ws"
    engine = qkv.build(folder, items=pd.concat([items, variant]), encoder="corpus")
    engine.add(items.iloc[[3]].assign(id="i9", title="Kettle z"))
    engine.remove(["i4"])
    return folder


@pytest.fixture(scope="module")
def engine(folder):
    with qkv.open(folder) as engine:
        yield engine


def ids(engine, where):
    return sorted(hit.id for hit in engine.search("kettle", where=where))


@pytest.mark.parametrize("name", NUMBERS)
def test_a_column_of_any_name_is_read_by_conditions(engine, name):
    assert ids(engine, f'"{name}" = 10.5') == ["i1"]
    assert ids(engine, f'"{name}" > 20') == ["i2", "i3", "i9"]


@pytest.mark.parametrize("name", NUMBERS)
def test_a_column_of_any_name_may_have_variants(engine, name):
    assert ids(engine, f'"{name}" = 99.5') == ["i2"]


@pytest.mark.parametrize("name", TEXTS)
def test_a_text_column_of_any_name_is_read_by_conditions(engine, name):
    assert ids(engine, f"\"{name}\" LIKE 'cell 3%'") == ["i3", "i9"]


def test_every_cell_of_such_columns_is_kept(engine):
    row = engine.show("i1")
    # The fields of our own, such as `score` and `users`, are told apart by this prefix.
    cells = {name: row.get(f"items.{name}", row.get(name)) for name in NUMBERS + TEXTS}
    assert cells == dict.fromkeys(NUMBERS, 10.5) | dict.fromkeys(TEXTS, "cell 1 of a kettle")


def test_such_a_workspace_is_verified_merged_and_repaired(folder, tmp_path):
    copy = shutil.copytree(folder, tmp_path / "ws")
    with qkv.open(copy) as engine:
        engine.compact()
    assert qkv.repair(copy)
    with qkv.open(copy) as engine:
        assert ids(engine, "rowid > 20 AND _position < 90") == ["i2", "i3", "i9"]


@pytest.mark.parametrize("name", WORDS_OF_SQL)
def test_a_word_of_sql_without_quotes_is_told_to_be_quoted(engine, name):
    with pytest.raises(QkvError, match=f'"{name}"'):
        engine.search("kettle", where=f"{name} = 10.5")


@pytest.mark.parametrize("name", ["true", "FALSE"])
def test_a_column_called_like_a_truth_value_has_another_name_in_conditions(tmp_path, name):
    items = pd.DataFrame({"id": ["a", "b"], "title": ["kettle", "kettles"], name: [3.5, 4.5]})
    engine = qkv.build(tmp_path / "ws", items=items, encoder="corpus")
    with pytest.raises(QkvError, match=f"{name}_2"):
        engine.search("kettle", where=f'"{name}" = 3.5')
    assert ids(engine, f"{name}_2 = 3.5") == ["a"]
