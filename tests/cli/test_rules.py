"""`rules` on the command line: how rules are written, and what is said of them."""

import json

import pytest


@pytest.fixture
def rules(qkv, shop_copy):
    """Calls `rules` on a shop of the test's own."""
    return lambda *args: qkv("-w", shop_copy, "rules", *args)


@pytest.fixture
def found(qkv, shop_copy):
    def search(*args):
        return [row["id"] for row in json.loads(qkv("-w", shop_copy, *args).stdout)]

    return lambda *args: search("search", *args, "--format", "json")


def test_where_there_are_no_rules_there_is_no_table(rules):
    assert rules("list").stdout == "no rules\n"


def test_a_rule_is_added_shown_and_removed(rules, found):
    before = found("ladder")
    added = rules("add", "--pin", "Ladder = red apple, 4")
    assert (added.code, added.stderr) == (0, "Rule 1 added: pin Ladder = 1, 4.\n")
    boosted = rules("add", "--boost", "made >= 2008: 0.5", "--name", "new")
    assert boosted.stderr.splitlines() == [
        "It holds for 3 of 10 items.",
        "Rule 2 added: boost made >= 2008: +0.5.",
    ]
    assert found("ladder") == [1, 4, 8, 7]
    assert found("ladder", "--no-rules") == before
    lines = rules("list").stdout.splitlines()
    assert [line.split() for line in lines] == [
        ["rule", "name"],
        ["1", "pin", "Ladder", "=", "1,", "4"],
        ["2", "boost", "made", ">=", "2008:", "+0.5", "new"],
    ]
    assert rules("remove", "1").stderr == "Rule 1 removed: pin Ladder = 1, 4.\n"
    assert [row["number"] for row in json.loads(rules("list", "--format", "json").stdout)] == [2]


def test_a_title_with_a_comma_is_one_item(rules, qkv, shop_copy, tmp_path):
    (tmp_path / "more.csv").write_text('id,title,made\n77,"nails, steel",2001\n', "utf-8")
    assert qkv("-w", shop_copy, "add", tmp_path / "more.csv").code == 0
    assert rules("add", "--pin", "nails=nails, steel").stderr == "Rule 1 added: pin nails = 77.\n"


def test_a_rule_that_is_skipped_is_listed_with_its_problem(rules, qkv, shop_copy):
    rules("add", "--bury", "hammer=4")
    qkv("-w", shop_copy, "remove", "4", "--yes")
    assert "4 is not in the catalog" in rules("list").stdout
    answer = qkv("-w", shop_copy, "search", "hammer")
    assert "Rule 1 is skipped: 4 is not in the catalog." in answer.stderr


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ([], "--pin, --bury and --boost"),
        (["--pin", "a=1", "--boost", "made > 1: 1"], "--pin, --bury and --boost"),
        (["--pin", "ladder"], "QUERY=ITEM"),
        (["--pin", ""], "--pin is QUERY=ITEM"),
        (["--bury", "ladder="], "--bury"),
        (["--boost", "made > 1"], "CONDITION: X"),
        (["--boost", ": 1"], "CONDITION: X"),
        (["--boost", "made > 1: much"], "CONDITION: X"),
        (["--boost", "made > 1: 0"], "not 0"),
        (["--boost", "made > 1: inf"], "from -1000 to 1000"),
    ],
)
def test_what_is_not_written_as_a_rule_is_wrong_usage(rules, args, said):
    answer = rules("add", *args)
    assert (answer.code, answer.stdout) == (2, "")
    assert said in answer.stderr


def test_the_bundled_samples_have_no_rules_of_their_own(qkv):
    answer = qkv("-w", "sample:movies", "rules", "add", "--boost", "year > 2000: 1")
    assert answer.code == 1
    assert "make your own copy" in answer.stderr
