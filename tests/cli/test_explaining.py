"""`--explain`, alone or with `full`: what of a command line is its value."""

import json

import click
import pytest
from click.testing import CliRunner

from qkvsearch.cli.hits import ExplainedCommand, explain_option

TOLERANCE = 1e-4


@click.command(cls=ExplainedCommand)
@click.argument("query", nargs=-1)
@explain_option("Why.")
@click.option("-k", type=int)
def echo(query, explain, k):
    click.echo(json.dumps([list(query), explain, k]))


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (["jacket"], [["jacket"], None, None]),
        (["--explain", "jacket"], [["jacket"], "plain", None]),
        (["jacket", "--explain"], [["jacket"], "plain", None]),
        (["jacket", "--explain", "-k", "3"], [["jacket"], "plain", 3]),
        (["jacket", "--explain", "full"], [["jacket"], "full", None]),
        (["--explain", "plain", "full", "moon"], [["full", "moon"], "plain", None]),
        (["--explain=full", "full"], [["full"], "full", None]),
        (["--explain", "fuller"], [["fuller"], "plain", None]),
        (["--explain", "Full"], [["Full"], "plain", None]),
        (["full", "--explain", "moon"], [["full", "moon"], "plain", None]),
        (["--explain", "--", "full"], [["full"], "plain", None]),
        (["--", "--explain", "moon"], [["--explain", "moon"], None, None]),
        (["--explain", "--explain", "full"], [[], "full", None]),
    ],
)
def test_only_the_words_full_and_plain_are_its_value(args, told):
    result = CliRunner().invoke(echo, args)
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout) == told


def test_another_value_is_refused():
    result = CliRunner().invoke(echo, ["--explain=all"])
    assert result.exit_code == 2
    assert "'plain', 'full'" in result.output


@pytest.mark.parametrize("how", [["--explain"], ["--explain", "full"]])
@pytest.mark.parametrize(
    "asked",
    [["search", "apple", "hammer"], ["similar", "1", "4"],
     ["recommend", "--user", "101", "--damping", "1", "--diversity", ".3"]],
)  # fmt: skip
def test_json_has_all_parts_and_plain_reasons_that_add_up(qkv, shop_path, asked, how):
    rows = qkv("-w", shop_path, *asked, *how, "--format", "json").json()
    assert rows
    for row in rows:
        parts = [part["value"] for part in row.get("parts", ())]
        parts += [part["contribution"] for part in row.get("because", ())]
        room = TOLERANCE * max(1.0, sum(map(abs, parts)))
        assert sum(parts) == pytest.approx(row["score"], abs=room)
        assert sum(one["value"] for one in row["reasons"]) == pytest.approx(row["score"], abs=room)
        unnamed = [one["value"] for one in row["reasons"] if one["text"].endswith(" others")]
        assert row["others"] == sum(unnamed)
        assert all(one.keys() == {"text", "value"} and one["text"] for one in row["reasons"])


def test_full_is_every_part_of_the_first_hit(qkv, videos_path, all_heads):
    def ask(*more):
        found = qkv("-w", videos_path, "search", "tie a knot", *more, "--format", "json")
        return [len(row["parts"]) for row in found.json()], found.stderr

    counts, said = ask("-k", 2, "--explain", "full")
    assert counts[0] > counts[1] == 21
    assert "--offset N -k 1" in said
    (second,), said = ask("-k", 1, "--offset", 1, "--explain", "full")
    assert second > 21
    assert "--offset" not in said
    assert ask("-k", 2, "--explain") == ([21, 21], "")


def test_the_table_has_plain_reasons_or_every_part(qkv, shop_path):
    plain = qkv("-w", shop_path, "search", "--explain", "apple", "hammer", "-k", 1).stdout
    assert "apple: " in plain
    assert "average item (subtracted)" in plain
    assert "lexical" not in plain
    full = qkv("-w", shop_path, "search", "apple", "hammer", "--explain", "full", "-k", 1).stdout
    assert "lexical: apple" in full
    assert "average item (subtracted)" in full


def test_in_csv_a_reason_is_its_text_and_what_it_adds(qkv, shop_path):
    text = qkv("-w", shop_path, "search", "apple", "--explain", "--format", "csv").stdout
    assert "average item (subtracted) (-" in text


def test_it_is_said_that_many_hits_are_explained(qkv, movies_path):
    for k, is_said in ((100, False), (101, True)):
        answer = qkv("-w", movies_path, "search", "year:0..", "-k", k, "--explain")
        assert ("Explaining 101 hits" in answer.stderr) == is_said
