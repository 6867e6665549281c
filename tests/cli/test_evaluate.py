"""`evaluate`: one object in JSON, rows elsewhere, baselines beside, and mistakes in a sentence."""

import csv
import io
import json
from functools import partial
from importlib.util import find_spec

import pytest

from qkvsearch.cli.evaluate import recommend
from qkvsearch.evaluation import systems
from qkvsearch.evaluation.splits import PROTOCOLS
from qkvsearch.models.next_item import NextItem

SYSTEMS = ["qkvsearch", "collaborative", "neighbours", "popularity", "item-knn", "ease", "biases"]


@pytest.fixture
def judged(tmp_path):
    """Two queries of the shop and their answers, as arguments."""
    (tmp_path / "q.tsv").write_text("q1\tred apple\nq2\tladder\nq3\tzzqx\n", encoding="utf-8")
    (tmp_path / "qrels.txt").write_text("q1 0 1 1\nq2 0 7 2\nq2 0 8 1\n", encoding="utf-8")
    return ("search", "--queries", "q.tsv", "--qrels", "qrels.txt")


def test_search_gives_one_object(qkv, shop_path, judged):
    answer = qkv("-w", shop_path, "evaluate", *judged, "--format", "json")
    found = answer.json()
    assert list(found)[:4] == ["protocol", "metrics", "intervals", "baselines"]
    assert found["metrics"] == {"ndcg@10": 1.0, "mrr@10": 1.0, "recall@100": 1.0}
    assert set(found["baselines"]) == {"lexical"}
    assert found["queries"] == 2
    assert "1 query without judgements left out: q3" in answer.stderr


def test_search_takes_heads_and_is_no_baseline_of_itself(qkv, shop_path, judged):
    run = ("-w", shop_path, "evaluate", *judged, "--format", "json")
    assert qkv(*run, "--heads", "lexical").json()["baselines"] == {}
    both = qkv(*run, "--heads", "lexical, semantic").json()
    assert both == qkv(*run).json()


def test_recommend_gives_one_object_with_its_baselines(qkv, movies_path):
    answer = qkv(
        "-w", movies_path, "evaluate", "recommend", "--protocol", "time", "--format", "json"
    )
    found = answer.json()
    assert found["protocol"] == "time"
    names = "ndcg recall precision hit_rate mrr map novelty diversity coverage".split()
    ranked = {f"{name}@10" for name in names}
    assert list(found)[:5] == ["protocol", "metrics", "intervals", "baselines", "differences"]
    assert set(found["metrics"]) == {*ranked, "rmse", "mae"}
    assert [set(figures) for figures in found["heads"].values()] == [ranked, ranked]
    for baseline in ("popularity", "item-knn", "ease"):
        assert set(found["baselines"][baseline]) == ranked
    assert found["metrics"]["ndcg@10"] > found["baselines"]["popularity"]["ndcg@10"]
    assert found["metrics"]["rmse"] < found["baselines"]["biases"]["rmse"]
    low, high = found["intervals"]["ndcg@10"]
    assert low < found["metrics"]["ndcg@10"] < high
    assert found["differences"]["rmse"]["baseline"] == "biases"
    assert found["left_out"] == {}


def test_recommend_takes_k_and_a_seed(qkv, shop_path):
    run = ("-w", shop_path, "evaluate", "recommend", "--format", "json")
    found = qkv(*run, "-k", 3, "--seed", 5).json()
    assert (found["k"], found["random_state"]) == (3, 5)
    assert "recall@3" in found["metrics"]
    assert found != qkv(*run, "-k", 3).json()


def test_other_formats_have_a_row_for_each_system(qkv, shop_path, tmp_path):
    run = ("-w", shop_path, "evaluate", "recommend")
    rows = list(csv.DictReader(io.StringIO(qkv(*run, "--format", "csv").stdout)))
    assert [row["system"] for row in rows] == SYSTEMS
    exact = qkv(*run, "--format", "json").json()["metrics"]
    assert float(rows[0]["ndcg@10"]) == exact["ndcg@10"]
    lines = qkv(*run, "--format", "jsonl").stdout.splitlines()
    assert [json.loads(line)["system"] for line in lines] == SYSTEMS
    assert qkv(*run, "--format", "markdown").stdout.startswith("| protocol | system |")
    assert qkv(*run, "-o", "found.json").stdout == ""
    assert json.loads((tmp_path / "found.json").read_text())["metrics"] == exact
    pytest.importorskip("pyarrow", reason="writing Parquet needs the extra [parquet]")
    assert qkv(*run, "-o", "found.parquet").code == 0


def test_the_table_has_a_line_a_system_and_marks_the_best(qkv, movies_path):
    answer = qkv("-q", "-w", movies_path, "evaluate", "recommend", "-k", 60)
    sentence, figures = answer.stdout.split("\n\n", 1)
    lines = figures.splitlines()
    first, second = lines[:8], lines[9:18]
    assert "among 60 recommendations" in " ".join(sentence.split())
    assert first[0].split() == ["ndcg", "recall", "precision", "hit_rate", "mrr", "map"]
    assert second[0].split() == ["novelty", "diversity", "coverage", "rmse", "mae"]
    assert [line.split()[0] for line in first[1:] if "±" not in line] == SYSTEMS[:-1]
    assert [line.split()[0] for line in second[1:] if "±" not in line] == SYSTEMS
    assert sum(line.count("*") for line in first) == 6
    assert sum(line.count("*") for line in second) == 2  # more novelty is not better
    assert first[2].count("±") == 6
    assert "random, k = 60: " in lines[19]
    assert any(line.startswith("ndcg@60: ") for line in lines)
    assert max(map(len, lines)) <= 80
    assert answer.stderr == ""


@pytest.mark.skipif(find_spec("torch") is None, reason="training needs the extra [train]")
def test_the_model_of_what_comes_next_is_judged_on_request(qkv, movies_path, monkeypatch):
    monkeypatch.setattr(systems, "NextItem", partial(NextItem, 8, max_iter=1))
    run = ("-w", movies_path, "evaluate", "recommend", "--next-item")
    answer = qkv(*run, "--protocol", "leave-last-out", "--format", "json")
    found = answer.json()
    assert list(found["baselines"]) == ["popularity", "item-knn", "ease", "next-item", "biases"]
    assert set(found["baselines"]["next-item"]) == set(found["baselines"]["ease"])
    refused = qkv(*run, "--protocol", "strong")
    assert (refused.code, refused.stdout) == (1, "")
    assert "use leave-last-out or time" in refused.stderr


def test_a_sample_of_the_users_is_judged_on_request(qkv, movies_path):
    run = ("-w", movies_path, "evaluate", "recommend")
    answer = qkv(*run, "--users", 20, "--format", "json")
    found = answer.json()
    assert found["users"] == 20 < found["eligible_users"]
    of_all = f"20 of {found['eligible_users']}"
    assert f"{of_all} users, drawn at random (--users)" in answer.stderr
    assert f"k = 10: {of_all} users evaluated;" in " ".join(qkv(*run, "--users", 20).stdout.split())


def test_the_protocols_offered_are_the_ones_there_are():
    (option,) = [option for option in recommend.params if option.name == "protocol"]
    assert list(option.type.choices) == list(PROTOCOLS)


# --- mistakes ---


def test_a_log_without_times_refuses_the_protocols_that_need_them(qkv, shop_path):
    for protocol in ("time", "leave-last-out"):
        answer = qkv("-w", shop_path, "evaluate", "recommend", "--protocol", protocol)
        assert (answer.code, answer.stdout) == (1, "")
        assert f"--protocol {protocol} needs" in answer.stderr


def test_ranks_within_users_are_refused_by_time_alone(qkv, tmp_path):
    rows = [f"{u},{i},{i}" for u in range(6) for i in range(4)]
    (tmp_path / "log.csv").write_text("\n".join(["user,item,time_rank_in_user", *rows]))
    assert qkv("-w", "ws", "build", "--interactions", "log.csv").code == 0
    refused = qkv("-w", "ws", "evaluate", "recommend", "--protocol", "time")
    assert refused.code == 1
    assert "only ranks times within each user" in refused.stderr
    run = ("-w", "ws", "evaluate", "recommend", "--protocol", "leave-last-out")
    assert qkv(*run).code == 0


@pytest.mark.parametrize(
    "args", [("serch",), ("search", "--seed", "-1"), ("recommend", "--users", "-1")]
)
def test_wrong_usage_exits_2(qkv, args):
    assert qkv("evaluate", *args).code == 2
