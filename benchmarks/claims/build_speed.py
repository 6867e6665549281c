"""What a build costs: whole processes, beside an earlier version, and beside encoding alone.

MovieLens' small set and 60,000 made items with 600,000 interactions are built with the static
encoder. QKVSEARCH_BEFORE names the command line of the earlier version to build them by as well,
such as .../venv/bin/qkvsearch; without it there are no ratios. Seconds are those of processors, as
a busy machine gives them too; the least of the turns, which go round by turns.

1,400 abstracts are built with minilm, in NumPy and with the extra `fast`, without the cache of
encoded texts and with it, beside encoding each of them once by sentence-transformers; 150 of TED's
dev queries are asked beside encoding them. These are wall-clock seconds.

QKVSEARCH_DATA=data QKVSEARCH_BEFORE=... python benchmarks --only build_speed
(ten minutes; peers: pip install sentence-transformers '.[fast]'; minilm where it is installed)
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import numpy as np
import pandas as pd

import qkvsearch as qkv
from benchmarks.support.large_log import interactions, texts
from benchmarks.support.public_data import JudgedTexts, cranfield, data_folder, ted
from benchmarks.support.results import Row, installed
from benchmarks.support.script import main
from benchmarks.support.sentence_peer import NAME, is_here, sentence_transformer
from benchmarks.support.timing import System, compare, with_times
from qkvsearch.text.pretrained.onnx_layers import NUMPY, ONNX, VARIABLE

BEFORE = "QKVSEARCH_BEFORE"
ITEMS, USERS, LOG = 60_000, 20_000, 600_000
TURNS, LARGE_TURNS = 2, 1
FAST = "qkvsearch[fast]"
GIGABYTES = "GB of memory at the most"


def small() -> list[Row]:
    """MovieLens' small set."""
    source = [str(data_folder() / "ml-latest-small")]
    return builds("a build of 9,742 films with static", source, TURNS)


def large() -> list[Row]:
    """Titles of a few words, descriptions of 20 to 60, categories."""
    rng = np.random.default_rng(0)
    with TemporaryDirectory() as place:
        items, log = Path(place, "items.csv"), Path(place, "log.csv")
        columns = {
            "id": range(ITEMS),
            "title": texts(ITEMS, 3, 8, rng),
            "description": texts(ITEMS, 20, 60, rng),
            "categories": ["|".join(text.split()) for text in texts(ITEMS, 1, 4, rng)],
        }
        pd.DataFrame(columns).to_csv(items, index=False)
        interactions(ITEMS, USERS, LOG, rng).to_csv(log, index=False)
        source = ["--items", str(items), "--interactions", str(log)]
        return builds(f"a build of {ITEMS:,} items with static", source, LARGE_TURNS)


def builds(task: str, source: Sequence[str], turns: int) -> list[Row]:
    """Ours, and the earlier version's where it is named."""
    commands = {"qkvsearch": [sys.executable, "-m", "qkvsearch"]}
    if BEFORE in os.environ:
        commands["before"] = [os.environ[BEFORE]]
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in commands}
    for _ in range(turns):
        for name, command in commands.items():
            found[name].append(build([*command, "-q"], source))
    rows = [
        Row(task, name, GIGABYTES, min(memory for _, memory in of)) for name, of in found.items()
    ]
    return with_times(rows, [min(seconds for seconds, _ in of) for of in found.values()])


def build(command: Sequence[str], source: Sequence[str]) -> tuple[float, float]:
    """Processor seconds of a process and its threads, and how much memory it held at the most."""
    # Where this process looks for modules, the earlier version must not.
    is_ours = command[0] == sys.executable
    given = {k: value for k, value in os.environ.items() if is_ours or k != "PYTHONPATH"}
    with TemporaryDirectory() as place:
        words = [*command, "-w", str(Path(place, "ws")), "build", *source, "--encoder", "static"]
        process = subprocess.Popen(words, env=given)
        _, status, used = os.wait4(process.pid, 0)
    if status:
        raise subprocess.CalledProcessError(status, words)
    # Kilobytes, but for macOS, which has bytes.
    unit = 1 if sys.platform == "darwin" else 1024
    return used.ru_utime + used.ru_stime, used.ru_maxrss * unit / 1e9


def with_minilm() -> list[Row]:
    """Abstracts: whole builds by each runtime, a second one, and their vectors alone."""
    data = cranfield()
    whole = [
        ". ".join(columns) for columns in zip(*(data.items[c] for c in data.text), strict=True)
    ]

    def built(place: str, runtime: str = NUMPY, cache: int = 0, encoder: str = "minilm") -> None:
        shutil.rmtree(Path(place, "ws"), ignore_errors=True)
        with settings(runtime, cache, place):
            build_with(encoder, data, place).close()

    peer = partial(sentence_transformer().encode, show_progress_bar=False)
    systems = [System("qkvsearch", built)]
    if installed("onnxruntime"):
        fast, cache = partial(built, runtime=ONNX), 1_000_000_000
        systems += [System(FAST, fast), System(f"{FAST}, built again", partial(fast, cache=cache))]
    systems += [
        System("qkvsearch, corpus encoder", partial(built, encoder="corpus")),
        System(f"`{NAME}`, each encoded once", lambda _: peer(whole)),
    ]
    task = f"a build of {len(whole):,} abstracts with minilm"
    with TemporaryDirectory() as place:
        return compare(task, systems, [place], turns=1, blas_threads=None)


def queries() -> list[Row]:
    """TED's dev queries: whole searches by each runtime, and the query's vector alone."""
    data = ted("dev")
    texts, systems = list(data.queries.values())[:150], []
    with TemporaryDirectory() as place, ExitStack() as opened:
        for name, runtime in (("qkvsearch", NUMPY), (FAST, ONNX)):
            if runtime == NUMPY or installed("onnxruntime"):
                with settings(runtime, 0, place):
                    engine = opened.enter_context(build_with("minilm", data, place))
                    engine.search(texts[0])  # loads the model
                systems.append(System(name, engine.search))
        peer = partial(sentence_transformer().encode, show_progress_bar=False)
        systems.append(System(f"`{NAME}`, the vector alone", lambda text: peer([text])))
        task = "a search of 2,550 talks with minilm, by runtime"
        return compare(task, systems, texts, blas_threads=None)


def build_with(encoder: str, data: JudgedTexts, place: str) -> qkv.Engine:
    columns = qkv.Columns(text=data.text)
    return qkv.build(Path(place, "ws"), items=data.items, columns=columns, encoder=encoder)


@contextmanager
def settings(runtime: str, cache: int, place: str) -> Iterator[None]:
    """What runs the transformer, and the size and the folder of the cache of encoded texts."""
    names = {VARIABLE: runtime, "QKVSEARCH_MAX_CACHE": str(cache), "XDG_CACHE_HOME": place}
    with patch.dict(os.environ, names):
        yield


PEERS_PARTS = {"minilm": with_minilm, "query": queries} if is_here() else {}
PARTS = {"small": small, "large": large, **PEERS_PARTS}

if __name__ == "__main__":
    main(__file__, PARTS, peers=[NAME, "onnxruntime"])
