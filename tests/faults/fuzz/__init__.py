"""What all fuzzing shares: strange texts and values, and what a function may do when given them."""

import os
import pickle
import random
import tempfile
import traceback
from functools import cache
from pathlib import Path

from qkvsearch.errors import QkvError
from tests.faults.runner import Fault
from tests.faults.world import WORDS

# Inputs of one trial.
INPUTS = 200
# Signs with which readers of text have had trouble.
STRANGE = [
    "", " ", "\t", "\n", "\r\n", "\r", "\0", "\x1b[31m", "\x9b1m", "\u202e", "\ufeff", "\ud800",
    "\U0001f680", "e\u0301", "ß", "İ", "ﬁ", "\u2028", "\u00a0", "\u200b", '"', "'", '""', "''",
    "`", "\\", "/", "../", "%", "_", ";", ",", "|", "--", "/*", "*/", "=1+1", "@x", "-1", "+",
    "NULL", "nan", "NaN", "inf", "-inf", "1e309", "1e-400", "-0", "0x1F", "1_000", "٣", "１２",
    "9223372036854775807", "9223372036854775808", "-9223372036854775809", "1" * 400, "a" * 5000,
    "true", "None", "1970-01-01", "0000-00-00", "9999-12-31T23:59:60Z", "31.12.1999", "12:60",
    "title:", "title:rain", "id:3", "sample:movies", "~", "*", "?", "[", "]", "{", "}", "(", ")",
    "<script>", "&amp;", "&#0;", "\x7f", "\x1f\x8b", "PK\x03\x04", "SQLite format 3\0",
]  # fmt: skip


def text(chance, most=6):
    """Words and strange signs."""
    parts = [
        chance.choice(STRANGE) if chance.random() < 0.5 else chance.choice(WORDS)
        for _ in range(chance.randint(0, most))
    ]
    return chance.choice(["", " ", " "]).join(parts)


def changed_bytes(content, chance):
    """A few changes: flips, cuts, runs put in, taken out, repeated or moved."""
    found = bytearray(content)
    for _ in range(chance.choice([1, 1, 2, 4, 8])):
        if not found:
            return chance.randbytes(chance.randrange(20))
        place, n = chance.randrange(len(found)), chance.choice([1, 1, 2, 4, 16, 64])
        kind = chance.randrange(7)
        if kind <= 1:
            found[place] ^= 1 << chance.randrange(8)
        elif kind == 2:
            found[place : place + n] = chance.randbytes(n)
        elif kind == 3:
            found[place : place + n] = b""
        elif kind == 4:
            found[place:place] = found[place : place + n] * chance.choice([1, 2, 50])
        elif kind == 5:
            found[place:place] = chance.choice(STRANGE).encode("utf-8", "surrogatepass")
        else:
            found = found[:place]
    return bytes(found)


def changed_json(content, chance):
    """A copy in which one value is another one, is gone, or is there twice."""
    if isinstance(content, dict) and content and chance.random() < 0.85:
        name = chance.choice(list(content))
        rest = dict(content)
        if chance.random() < 0.15:
            del rest[name]
        elif chance.random() < 0.1:
            rest[text(chance, 2)] = rest.pop(name)
        else:
            rest[name] = changed_json(rest[name], chance)
        return rest
    if isinstance(content, list) and content and chance.random() < 0.85:
        place = chance.randrange(len(content))
        changed = [changed_json(content[place], chance)] if chance.random() < 0.7 else []
        return [*content[:place], *changed * chance.choice([1, 1, 2]), *content[place + 1 :]]
    if isinstance(content, int | float) and not isinstance(content, bool) and chance.random() < 0.5:
        return chance.choice([content + 1, content - 1, -content, content * 1000, 0, 2**40])
    return chance.choice(
        [None, True, 0, -1, 1, 7, 2**63, 0.5, 1e308, "", "x", "../x", "/etc/passwd", [], {}, [[]],
         [1, 2], {"a": 1}, text(chance, 3), "\ud800"]
    )  # fmt: skip


@cache
def canary():
    """What a pickle that is planted in files would make, if anybody unpickled it."""
    return Path(tempfile.gettempdir()) / f"faults-code-was-run-{os.getpid()}"


class _Payload:
    def __reduce__(self):
        return os.system, (f"touch {canary()}",)


@cache
def pickled():
    return pickle.dumps(_Payload())


def clear_error(error, said):
    """A message of one line that is no copy of another library's error."""
    message = str(error)
    if not message.strip():
        raise Fault(f"{said}: an error that says nothing")
    if "Traceback" in message:
        raise Fault(f"{said}: a traceback in a message")


def shown(given, most=300):
    return ascii(given)[:most]


def inputs(trial, make, use, n=INPUTS, most=300):
    """`use` of so many made inputs ends well or in a `QkvError`. Raises `Fault`, which names the
    first input that does not.
    """
    for number in range(n):
        given = make(random.Random(f"{trial.chance.random()} {number}"))
        said = f"input {number} {shown(given, most)}"
        trial.at(number)
        trial.counts["inputs"] += 1
        try:
            use(given)
            trial.counts["accepted"] += 1
        except QkvError as error:
            clear_error(error, said)
            trial.counts["refused"] += 1
        except Exception as error:
            raise Fault(f"{said}: {type(error).__name__}: {error} [{place_of(error)}]") from error
        finally:
            if canary().exists():
                canary().unlink()
                raise Fault(f"{said}: code was run")


def place_of(error):
    """The innermost lines of our own that an error came through."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if "qkvsearch" in frame.filename] or frames
    return " < ".join(f"{Path(one.filename).name}:{one.lineno}" for one in ours[-3:][::-1])
