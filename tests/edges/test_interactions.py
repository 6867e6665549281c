"""Logs as they come: people without a history, odd ratings, one user, one item."""

import pytest

ITEMS = "id,title\n1,kettle\n2,anchor\n3,ladder\n4,steel kettle\n"


@pytest.fixture
def shop_of(qkv, tmp_path):
    """Builds from a log over four items; what `build` said comes back."""

    def build(*rows, header="user,item,rating", items=ITEMS):
        (tmp_path / "items.csv").write_text(items)
        (tmp_path / "log.csv").write_text("\n".join([header, *rows, ""]))
        answer = qkv("-w", "ws", "build", "--items", "items.csv", "--interactions", "log.csv")
        assert answer.code == 0, answer.stderr
        return answer.stderr

    return build


@pytest.fixture
def ask(qkv):
    """Ids of the answer, and what was said beside it."""

    def run(*args):
        answer = qkv("-w", "ws", *args, "--format", "json")
        return [row["id"] for row in answer.json()], answer.stderr

    return run


def test_a_user_of_whom_no_row_could_be_used_is_unknown(shop_of, qkv):
    shop_of("ann,1,5", "ann,2,4", "anne,9,5")
    answer = qkv("-w", "ws", "history", "anne")
    assert (answer.code, answer.stdout, answer.stderr) == (1, "", "Error: no user 'anne'\n")


def test_a_like_of_an_item_that_nobody_met_recommends_nothing_and_says_so(shop_of, ask):
    shop_of("ann,1,5", "ann,2,4", "bob,1,5", "bob,3,5")
    ids, said = ask("recommend", "--like", "4")
    assert ids == []
    assert said.startswith("No recommendations")
    assert "(4)" in said
    assert "`similar`" in said
    assert "likes nothing" not in said
    assert "is left" not in said


def test_no_recommendations_have_the_reason_that_is_true(shop_of, ask, qkv):
    shop_of("ann,1,5", "ann,2,4", "bob,1,5", "bob,3,5", "eve,1,1")
    qkv("-w", "ws", "record", "solo", "4", "5")
    reasons = {
        "goes with": ["--user", "solo"],
        "likes nothing yet": ["--user", "eve"],
        "history is empty": ["--user", "eve", "--without", "1"],
        "no other item is left": ["--user", "ann", "--exclude", "3", "--exclude", "4"],
        "the condition leaves no item": ["--user", "ann", "--where", "id > 9"],
    }
    for reason, options in reasons.items():
        ids, said = ask("recommend", *options)
        assert ids == []
        assert [each for each in reasons if each in said] == [reason]


def test_no_similar_items_have_the_reason_that_is_true(shop_of, ask):
    shop_of("ann,1,5", "ann,2,5", items="id,title\n1,kettle\n2,pot\n3,!!!\n")
    ids, said = ask("similar", "1", "--exclude", "2", "--exclude", "3")
    assert (ids, said) == ([], "No neighbours: no other item is left.\n")
    ids, said = ask("similar", "3")
    assert ids == []
    assert "(3)" in said
    assert "is left" not in said


def test_users_without_recommendations_are_counted(shop_of, qkv):
    shop_of("ann,1,5", "ann,2,4", "bob,1,5", "bob,3,5", "eve,1,1")
    qkv("-w", "ws", "record", "solo", "4", "5")
    answer = qkv("-w", "ws", "recommend", "--all-users", "-o", "all.jsonl")
    assert "all.jsonl: recommendations for 2 of 4 users." in answer.stderr
    assert "No recommendations for 2 of 4 users; for one of them, --user says why" in answer.stderr


def test_nothing_is_said_where_there_are_recommendations_or_none_were_asked_for(qkv, shop_path):
    asked = ("-w", shop_path, "recommend", "--user", "101")
    some, none = qkv(*asked, "-k", 2), qkv(*asked, "-k", 0)
    assert (some.code, some.stderr, none.code, none.stderr) == (0, "", 0, "No hits: -k is 0.\n")
    assert some.stdout


def test_one_user_is_recommended_what_is_left(shop_of, ask):
    shop_of("ann,1,5", "ann,2,5")
    assert set(ask("recommend", "--user", "ann")[0]) == {3, 4}


def test_one_user_and_one_item_leave_nothing_to_recommend_and_that_is_said(shop_of, ask, qkv):
    shop_of("ann,1,5", items="id,title\n1,kettle\n")
    ids, said = ask("recommend", "--user", "ann")
    assert ids == []
    assert "item is left" in said
    assert ask("search", "kettle")[0] == [1]
    assert ask("similar", "1")[0] == []
    answer = qkv("-w", "ws", "evaluate", "recommend")
    assert answer.code == 1
    assert "too few interactions" in answer.stderr


def test_many_users_of_one_item_are_an_ordinary_log(shop_of, ask):
    shop_of(*(f"u{n},1,5" for n in range(9)))
    assert set(ask("recommend", "--user", "u3")[0]) == {2, 3, 4}
