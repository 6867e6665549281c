"""Questions at their edges: more hits asked for than there are, filters that leave nothing."""

import pytest

QUESTIONS = {
    "search": ["search", "apple"],
    "recommend": ["recommend", "--user", "101"],
    "similar": ["similar", "red apple"],
}
questions = pytest.mark.parametrize("args", QUESTIONS.values(), ids=list(QUESTIONS))


@pytest.fixture
def ask(qkv, shop_path):
    def run(*args):
        answer = qkv("-w", shop_path, *args, "--format", "json")
        return answer.json()

    return run


@questions
def test_k_above_the_catalog_gives_all_there_are_with_weights_that_sum_to_1(ask, args):
    rows = ask(*args, "-k", 10**9)
    assert 0 < len(rows) <= 10
    assert sum(row["weight"] for row in rows) == pytest.approx(1, abs=1e-5)


@questions
@pytest.mark.parametrize("where", ["made > 3000", "0", "title IS NULL"])
def test_a_filter_that_leaves_nothing_gives_no_hits_and_says_so(qkv, shop_path, args, where):
    answer = qkv("-w", shop_path, *args, "--where", where)
    assert (answer.code, answer.stdout) == (0, "")
    assert answer.stderr.startswith("No ")


@pytest.mark.parametrize("args", [["search", "apple"], ["items"], ["remove", "--dry-run"]])
def test_a_condition_may_be_given_more_or_less_time(qkv, shop_path, args, monkeypatch):
    slow = " AND ".join(["title LIKE '%e%'"] * 200)
    monkeypatch.setenv("QKVSEARCH_MAX_WHERE_SECONDS", "0")
    stopped = qkv("-w", shop_path, *args, "--where", slow)
    assert (stopped.code, stopped.stdout) == (1, "")
    assert "stopped after 0 seconds" in stopped.stderr
    monkeypatch.setenv("QKVSEARCH_MAX_WHERE_SECONDS", "60")
    assert qkv("-w", shop_path, *args, "--where", slow).code == 0
