"""A short part of `make faults`, with a seed of its own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs fork and SIGKILL"),
    pytest.mark.xdist_group("faults"),
]


@pytest.mark.parametrize(
    ("parts", "share"),
    [
        (["kills", "damage", "full-disk"], 0.04),
        (["at-once"], 0.04),
        (["fuzz-where", "fuzz-stored", "fuzz-models", "fuzz-documents"], 0.02),
        (["fuzz-commands"], 0.04),
    ],
)
def test_no_fault_is_found(parts, share):
    only = [word for part in parts for word in ("--only", part)]
    done = subprocess.run(
        [sys.executable, "-m", "tests.faults", "--share", str(share), "--seed", "7", *only],
        cwd=ROOT, capture_output=True, text=True, timeout=3600,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
