"""What tests of the parts of a log share."""

import pytest

from qkvsearch.evaluation.splits import PROTOCOLS

protocols = pytest.mark.parametrize("protocol", PROTOCOLS)


def pairs(log):
    return set(zip(log.users.tolist(), log.items.tolist(), strict=True))
