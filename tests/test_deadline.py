"""A deadline ends long work between two of its steps."""

import pytest

from qkvsearch._utils.deadline import DeadlineError, check_deadline, deadline


def test_work_stops_after_the_earliest_deadline():
    check_deadline()
    with deadline(-1), deadline(60), pytest.raises(DeadlineError, match="takes too long"):
        check_deadline()
    check_deadline()


@pytest.mark.parametrize(
    "ask",
    [
        lambda engine: engine.search("bread"),
        lambda engine: engine.recommend(user="w001", explain=True),
        lambda engine: engine.similar("v001"),
    ],
)
def test_a_question_after_its_deadline_is_not_answered(videos, ask):
    with deadline(-1), pytest.raises(DeadlineError):
        ask(videos)
