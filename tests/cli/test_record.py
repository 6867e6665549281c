"""`qkvsearch record`: says what it did, refuses what it cannot, never writes to the samples."""

from __future__ import annotations

import json


def test_the_next_recommend_knows_it(qkv):
    assert qkv("-w", "films", "build", "sample:movies").code == 0
    said = qkv("-w", "films", "record", "newcomer", "Alien", 5)
    assert (said.code, said.stdout) == (0, "")
    assert said.stderr == "Recorded: user newcomer, Alien (m056), rated 5.\n"
    answer = qkv("-w", "films", "recommend", "--user", "newcomer", "--explain", "--format", "json")
    hits = json.loads(answer.stdout)
    assert [reason["title"] for reason in hits[0]["because"]] == ["Alien"]


def test_an_unknown_item_exits_1_with_near_matches(qkv, movies_path):
    answer = qkv("-w", movies_path, "record", "u001", "Alein")
    assert (answer.code, answer.stdout) == (1, "")
    assert "did you mean Alien" in answer.stderr


def test_a_rating_that_is_no_number_is_wrong_usage(qkv, movies_path):
    assert qkv("-w", movies_path, "record", "u001", "Alien", "great").code == 2


def test_the_samples_are_not_written_to(qkv):
    answer = qkv("-w", "sample:movies", "record", "u001", "Alien")
    assert (answer.code, answer.stdout) == (1, "")
    assert "sample:movies is a bundled sample, and stays as it is" in answer.stderr


def test_a_rating_may_be_below_zero(qkv, movies_path):
    answer = qkv("-w", movies_path, "record", "u001", "Alien", "-3")
    assert answer.code == 1
    assert "a rating here is from 1 to 5, not -3" in answer.stderr
