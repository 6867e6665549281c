"""`searches` and `evaluate search --from-clicks`: what the owner reads of the log of searches."""

import pytest

from qkvsearch.store.search_log import SearchLog


@pytest.fixture
def logged(shop_here):
    """A log of what some visitors of the shop searched for, in the order of the searches."""
    log = SearchLog(shop_here, 30, print)
    for visitor in "abc":
        unknown = {"reason": "unknown_words", "words": ["maul"]}
        log.add_search(visitor, "maul", total=0, shown=[], no_hits=unknown)
        query_id = log.add_search(visitor, "hammer", total=2, shown=[5, 6, 1, 2])
        log.add_click(query_id, 2, 4)
    filtered = {"reason": "filtered_out", "where": "made < 0"}
    log.add_search("d", "red apple", total=0, shown=[], no_hits=filtered, has_options=True)
    return log


def test_json_has_the_most_frequent_first(qkv, logged):
    rows = qkv("searches", "--format", "json").json()
    assert [(r["query"], r["searches"], r["total"], r["clicks"]) for r in rows] == [
        ("hammer", 3, 2, 3),
        ("maul", 3, 0, 0),
        ("red apple", 1, 0, 0),
    ]
    assert qkv("searches", "-k", 1, "--offset", 1, "--format", "json").json() == rows[1:2]


def test_the_table_says_what_to_do(qkv, logged):
    answer = qkv("searches")
    assert max(map(len, answer.stdout.splitlines())) <= 80
    text = " ".join(answer.stdout.split())
    first, without_hits, without_clicks = (
        text.index(part) for part in ("3 queries", "Without hits", "Nobody clicks")
    )
    assert first < without_hits < without_clicks
    assert "no item has maul" in text
    assert "synonyms: maul, hammer" in text
    assert "filtered out: made < 0" in text
    assert "rules add --pin" in text[without_clicks:]
    assert "hammer=2" in text


@pytest.mark.parametrize(("only", "found"), [("no_hits", 2), ("no_clicks", 1)])
def test_one_list_alone(only, found, qkv, logged):
    assert len(qkv("searches", "--only", only, "--format", "json").json()) == found
    assert "Without hits" not in qkv("searches", "--only", only).stdout


def test_no_log_is_said(qkv, shop_here):
    answer = qkv("searches")
    assert (answer.code, answer.stdout) == (0, "")
    assert "serve --log-searches" in answer.stderr
    assert qkv("searches", "--format", "json").json() == []


def test_a_log_without_such_queries_is_not_called_empty(qkv, shop_here):
    SearchLog(shop_here, 30, print).add_search("a", "hammer", total=2, shown=[5, 6])
    assert qkv("searches", "--only", "no_hits").stderr == "No query of the log is one of these.\n"
    assert "there are 1" in qkv("searches", "--offset", 9).stderr


def test_lines_that_cannot_be_read_are_counted(qkv, logged):
    with next(logged.folder.glob("*.jsonl")).open("a") as file:
        file.write("\n{")
    assert "1 line of the log cannot be read" in qkv("searches").stderr


def test_clicks_measure_search(qkv, logged):
    answer = qkv("evaluate", "search", "--from-clicks", "--format", "json")
    found = answer.json()
    assert found["protocol"] == "clicks"
    assert set(found["metrics"]) == {"ndcg@10", "mrr@10", "recall@100"}
    assert set(found["baselines"]) == {"lexical"}
    assert (found["clicks"], found["queries"]) == (3, 1)
    assert found["position_bias"]["corrected"] is False
    assert "3 clicks are few" in answer.stderr
    text = " ".join(qkv("evaluate", "search", "--from-clicks").stdout.split())
    assert "3 clicks on hits of 1 query" in text
    assert "Position bias is not corrected" in text


def test_rules_count_for_clicks_and_are_left_out_beside_them(qkv, logged):
    """The item of all clicks is the fourth hit, or a pinned one."""
    assert qkv("rules", "add", "--pin", "hammer=2").code == 0
    evaluate = ("evaluate", "search", "--from-clicks", "--format", "json")
    found = qkv(*evaluate).json()
    assert found["metrics"]["mrr@10"] == 1
    without = found["baselines"]["no rules"]["mrr@10"]
    assert without < 1
    assert found["baselines"]["lexical"]["mrr@10"] < 1
    left_out = qkv(*evaluate, "--no-rules").json()
    assert left_out["metrics"]["mrr@10"] == without
    assert set(left_out["baselines"]) == {"lexical"}


def test_clicks_and_judgements_exclude_each_other(qkv, logged, tmp_path):
    (tmp_path / "q.tsv").write_text("q1\tx\n")
    files = ("--queries", "q.tsv", "--qrels", "q.tsv")
    answer = qkv("evaluate", "search", "--from-clicks", *files)
    assert answer.code == 2
    assert "--from-clicks" in answer.stderr


def test_no_clicks_is_an_error_that_says_where_they_come_from(qkv, shop_here):
    answer = qkv("evaluate", "search", "--from-clicks")
    assert answer.code == 1
    assert "serve --log-searches" in answer.stderr


def test_forget_says_what_it_deletes(qkv, logged):
    logged.add_search("x", "orders of 101", total=0, shown=[])
    plan = qkv("forget", "101", "--dry-run")
    assert "and 1 logged search would be deleted" in plan.stderr
    assert "logged search deleted" in qkv("forget", "101", "--yes").stderr
    kept = "".join(path.read_text() for path in logged.folder.glob("*.jsonl"))
    assert "orders of 101" not in kept


@pytest.mark.parametrize(
    "wrong",
    [("--log-days", "3"), ("--log-searches", "--demo"), ("--log-searches", "--log-days", "0")],
)
def test_serve_refuses_what_makes_no_sense(wrong, qkv, surroundings):
    pytest.importorskip("fastapi", reason="needs qkvsearch[web]")
    answer = qkv("serve", *wrong)
    assert answer.code == 2
    assert "--log-" in answer.stderr
