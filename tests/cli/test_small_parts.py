"""Small parts of what commands print that no other test looks at: ends, labels, curves, numbers."""

import sys
from types import SimpleNamespace

import pytest

from qkvsearch.cli.lesson import reading


@pytest.mark.parametrize(("reads", "writes"), [(True, False), (False, True), (False, False)])
def test_only_who_reads_and_types_is_asked(monkeypatch, reads, writes):
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(isatty=lambda: reads))
    monkeypatch.setattr(sys, "stdout", SimpleNamespace(isatty=lambda: writes))
    assert not reading.is_interactive()
