"""`add` and `remove`: what they say, and that `search` and `record` know it at once."""

from pathlib import Path

import pytest


def ids(answer):
    return [row["id"] for row in answer.json()]


def test_an_added_item_is_found_recommended_from_and_removed_again(qkv, shop_here, tmp_path):
    file = tmp_path / "more.csv"
    file.write_text("id,title,made\n31,copper kettle,2011\n4,rubber mallet,2012\n")
    answer = qkv("add", file)
    assert (answer.code, answer.stdout) == (0, "")
    assert "more.csv: 2 rows read: 2 kept" in answer.stderr
    assert answer.stderr.endswith(".qkvsearch: 1 added, 1 replaced; 11 items.\n")
    assert ids(qkv("search", "kettle", "--format", "json"))[0] == 31
    assert qkv("record", "eve", "copper kettle", "5").code == 0

    answer = qkv("remove", "copper kettle", "4")
    assert (answer.code, answer.stdout) == (0, "")
    assert answer.stderr == ".qkvsearch: 2 removed, with 5 interactions; 9 items.\n"
    assert 31 not in ids(qkv("search", "kettle", "--format", "json"))
    info = " ".join(qkv("info").stdout.split())
    assert "since then: 1 added, 1 replaced, 2 removed with 5 interactions" in info
    assert "heads collaborative 0.50, neighbours 0.50 (too few users to learn the shares)" in info


def test_columns_are_told_as_to_build(qkv, shop_here, tmp_path):
    file = tmp_path / "more.csv"
    file.write_text("nr,label,made\n31,copper kettle,2011\n")
    answer = qkv("add", file)
    assert (answer.code, answer.stdout) == (1, "")
    assert "which column is the id" in answer.stderr
    assert "--id-column" in answer.stderr
    assert qkv("add", file, "--id-column", "nr", "--title-column", "label").code == 0
    assert ids(qkv("search", "kettle", "--format", "json"))[0] == 31
    renamed = qkv("add", file, "--id-column", "nr", "--text-columns", "label")
    assert "0 added, 1 replaced" in renamed.stderr


@pytest.mark.parametrize(
    ("args", "code", "said"),
    [
        (["add", "none.csv"], 1, "none.csv: no such file"),
        (["remove"], 2, "one of the two"),
    ],
)
def test_a_mistake_is_told_and_changes_nothing(qkv, shop_here, args, code, said):
    answer = qkv(*args)
    assert (answer.code, answer.stdout) == (code, "")
    assert said in answer.stderr
    assert 1 in ids(qkv("search", "red apple", "--format", "json"))


def test_sync_says_how_many_and_refuses_what_looks_cut_off(qkv, shop_copy, shop_items):
    shop = ("-w", shop_copy)
    shop_items.assign(made=[1990, *shop_items["made"][1:]]).to_csv("export.csv", index=False)
    shop_items[:7].to_csv("cut.csv", index=False)
    said = qkv(*shop, "sync", "export.csv", "--format", "json")
    numbers = {name: said.json()[name] for name in ("added", "changed", "removed", "n_items")}
    assert numbers == {"added": 0, "changed": 1, "removed": 0, "n_items": 10}
    assert "nothing to change" in qkv(*shop, "sync", "export.csv").stderr
    refused = qkv(*shop, "sync", "cut.csv")
    assert (refused.code, refused.stderr.count("\n")) == (1, 1)
    for part in ("3 of 10 items", "--yes", "--keep-missing"):
        assert part in refused.stderr
    assert "3 removed with 2" in qkv(*shop, "sync", "cut.csv", "--yes").stderr


def test_an_update_changes_the_columns_of_the_file(qkv, shop_copy):
    Path("made.csv").write_text("id,made\n1,1990\n")
    assert "1 changed" in qkv("-w", shop_copy, "add", "made.csv", "--update").stderr
    shown = qkv("-w", shop_copy, "show", "1", "--format", "json").json()
    assert (shown["title"], shown["made"]) == ("red apple", 1990)


def test_a_single_record_may_be_an_event(qkv, shop_copy):
    answer = qkv("-w", shop_copy, "record", "101", "ladder", "--event", "view")
    assert (answer.code, "no column of events" in answer.stderr) == (1, True)
    assert qkv("-w", shop_copy, "record", "log.csv", "--event", "view").code == 2
