"""Arguments and names of files in bytes that are no text in UTF-8."""

import os
import sys

import pytest

pytestmark = pytest.mark.skipif(
    sys.platform in ("win32", "darwin"), reason="names are text on these systems"
)
# As Python has them: a byte 0xff, and what is é in Latin-1.
BYTE, LATIN = "\udcff", "caf\udce9"
ASKED = [
    ["search", f"apple {BYTE}"],
    ["search", "apple", "--where", f"title = '{BYTE}'"],
    ["recommend", "--user", BYTE],
    ["recommend", "--like", BYTE],
    ["items", "-o", f"{BYTE}.json"],
    ["history", BYTE],
    ["record", BYTE, "red apple"],
    ["record", f"{BYTE}.csv"],
    ["attend", f"red {BYTE} apple"],
    ["teach", "context", "--sentence", f"bread {BYTE} bread", "--no-quiz"],
    ["evaluate", "search", "--queries", BYTE, "--qrels", BYTE],
    ["data", "fetch", BYTE],
    ["build", "--items", BYTE],
    [BYTE],
]


@pytest.mark.parametrize("args", ASKED, ids=lambda args: ascii(args)[:50])
def test_they_are_answered_or_refused_in_a_sentence(qkv, shop_copy, args):
    answer = qkv("-w", shop_copy, *args)
    assert answer.code in (0, 1, 2)
    assert "Traceback" not in answer.stderr
    assert (answer.code > 0) == ("Error: " in answer.stderr)
    assert "\udcff" not in answer.stdout + answer.stderr


def test_a_file_of_such_a_name_is_read_and_named(qkv):
    with open(os.fsencode(f"{LATIN}.csv"), "w") as file:
        file.write("id,title\n1,kettle\n2,anchor\n")
    answer = qkv("-w", f"{LATIN}-ws", "build", f"{LATIN}.csv")
    assert answer.code == 0, answer.stderr
    assert r"caf\udce9.csv: 2 rows read" in answer.stderr
    answer = qkv("-w", f"{LATIN}-ws", "info", "--format", "json")
    assert (answer.code, r"caf\udce9-ws" in answer.stdout) == (0, True)
    qkv("-w", f"{LATIN}-ws", "items", "-o", f"{LATIN}.json")
    assert os.path.isfile(os.fsencode(f"{LATIN}.json"))
