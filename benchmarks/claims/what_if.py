"""What a list of recommendations would be without one item of the history: an exact re-solve.

ml-latest-small, 9,742 films and 610 users, corpus encoder. Every twelfth user by the length of the
history, and the longest: what counts most for the best hit is left out, as a click on a reason
does. Once the list alone, 12 hits with three reasons each; and once as the page asks, beside it the
100 best with and without the item, to say what rose and fell. By HTTP on a connection that stays
open, one client; medians of several turns a user. Beside it stands the same list without anything
left out.

python benchmarks --only what_if    (a minute)
"""

from __future__ import annotations

import http.client
import json
import tempfile
import time
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

import qkvsearch as qkv
from benchmarks.support.http_load import serving
from benchmarks.support.public_data import data_folder
from benchmarks.support.results import Row
from benchmarks.support.script import main

TASK = "a list without one item of the history, over HTTP, ml-latest-small"
STRIDE, TURNS, K, MOST, REASONS = 12, 5, 12, 100, 3


@cache
def workspace() -> tuple[Path, list[tuple[str, int]]]:
    """A build, and users with the lengths of their histories, the shortest first."""
    made = Path(tempfile.mkdtemp(prefix="qkvsearch-benchmark-")) / "ws"
    with qkv.build(made, str(data_folder() / "ml-latest-small"), encoder="corpus") as engine:
        users = sorted((row["interactions"], row["id"]) for row in engine.users.list())
    return made, [(str(id_), n) for n, id_ in [*users[::STRIDE], users[-1]]]


def asked(user: str, gone: list[Any]) -> dict[str, Any]:
    return {"user": user, "without": gone, "k": K, "explain": True, "because": REASONS}


def compared(user: str, gone: list[Any]) -> list[dict[str, Any]]:
    """As the page asks."""
    plain = {"user": user, "k": MOST}
    return [asked(user, gone), plain, {**plain, "without": gone}]


def timed(connection: http.client.HTTPConnection, questions: list[dict[str, Any]]) -> Any:
    body = json.dumps({"questions": questions})
    seconds = []
    for _ in range(TURNS):
        begun = time.perf_counter()
        connection.request("POST", "/api/v1/recommend", body, {"Content-Type": "application/json"})
        answer = connection.getresponse().read()
        seconds.append(time.perf_counter() - begun)
    return median(seconds), json.loads(answer)["answers"]


def re_solve() -> list[Row]:
    path, users = workspace()
    times: dict[str, list[float]] = {"as it is": [], "without one": [], "compared": []}
    with serving(path, "--read-only") as port:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        for user, _ in users:
            seconds, (answer,) = timed(connection, [asked(user, [])])
            times["as it is"].append(seconds)
            reasons = answer["hits"][0]["because"] if answer["hits"] else []
            gone = [part["id"] for part in reasons if part["id"] is not None][:1]
            times["without one"].append(timed(connection, [asked(user, gone)])[0])
            times["compared"].append(timed(connection, compared(user, gone))[0])
    rows = []
    for name, seconds in times.items():
        *most, longest = seconds
        found = {f"p{100 * share:.0f} of users": np.quantile(most, share) for share in (0.5, 0.95)}
        found[f"a history of {users[-1][1]:,}"] = longest
        for what, one in found.items():
            first = rows[0].seconds if rows else one
            rows.append(Row(TASK, f"{name}, {what}", seconds=float(one), ratio=one / first))
    return rows


PARTS = {"re_solve": re_solve}

if __name__ == "__main__":
    main(__file__, PARTS, peers=["fastapi", "uvicorn"])
