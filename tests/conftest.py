"""What several packages are tested on: both bundled samples, built once, a shop of ten things,
matrices whose right answer is known, and the command line. All by the corpus encoder, so that it
does not matter which pretrained ones are installed.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

# Imported before there is any thread, where a server would import it in its own: pytest parses the
# modules of its plugins, such as anyio, and Python 3.11 fails where two threads parse at once.
import anyio._backends._asyncio  # noqa: F401
import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, settings
from scipy.sparse import csr_matrix, random_array

import qkvsearch
from qkvsearch.cli import main
from qkvsearch.engine import Engine
from qkvsearch.heads.stored_models import StoredModels
from qkvsearch.store import Workspace
from qkvsearch.tables.samples import sample

# A slow machine is no failure. Few examples, since every run draws others.
settings.register_profile(
    "qkvsearch", deadline=None, max_examples=25, suppress_health_check=[HealthCheck.too_slow]
)
# Seconds after which a page in the browser is taken to have stopped.
WITHIN = 300
settings.load_profile("qkvsearch")
# What a test writes need not outlast a power cut. Whether files are synced is tested in processes
# of their own (tests/faults), and where a test puts its own function here.
os.fsync = lambda descriptor: None

ROOT = Path(__file__).parents[1]

# Sums of parts may differ from a score by this much of what was added up.
TOLERANCE = 1e-4


@pytest.fixture(scope="session")
def tiny_bert(tmp_path_factory):
    """The folder of a random transformer of 2 layers and 3 heads that reads 12 tokens."""
    from tests.text.test_transformer import write_folder  # skips without tokenizers

    return write_folder(tmp_path_factory.mktemp("tiny") / "bert")


@pytest.fixture(scope="session")
def assert_adds_up():
    """Checks parts against their score by the stated tolerance, 1e-4 · max(1, Σ|parts|)."""

    def check(values, score):
        values = list(values)
        tolerance = TOLERANCE * max(1.0, sum(abs(value) for value in values))
        assert sum(values) == pytest.approx(score, abs=tolerance)

    return check


@pytest.fixture(scope="session")
def videos_path(tmp_path_factory):
    path = tmp_path_factory.mktemp("videos") / "ws"
    qkvsearch.build(path, "sample:videos", encoder="corpus")
    return path


@pytest.fixture(scope="session")
def movies_path(tmp_path_factory):
    path = tmp_path_factory.mktemp("movies") / "ws"
    qkvsearch.build(path, "sample:movies", encoder="corpus")
    return path


@pytest.fixture(scope="session")
def things_path(tmp_path_factory):
    """The videos alone, without who watched them."""
    path = tmp_path_factory.mktemp("things") / "ws"
    qkvsearch.build(path, items=sample("videos").path("videos.csv"), encoder="corpus")
    return path


@pytest.fixture(scope="session")
def things(things_path):
    return Engine(things_path)


@pytest.fixture(scope="session")
def videos(videos_path):
    return Engine(videos_path)


@pytest.fixture(scope="session")
def movies(movies_path):
    return Engine(movies_path)


@pytest.fixture
def all_heads(monkeypatch):
    """All heads take part in the searches of builds with `corpus`, as in a large catalog."""
    weights = {"lexical": 0.3, "lsa": 0.1, "contrastive": 0.6}
    monkeypatch.setattr(StoredModels, "head_weights", property(lambda self: dict(weights)))


@pytest.fixture(scope="session")
def shop_items():
    """Integer ids, two equal titles, one item without words, one that nobody met (9)."""
    rows = [
        (1, "red apple", 2001),
        (2, "green apple", 2002),
        (3, "apple pie", 2003),
        (4, "steel hammer", 2004),
        (5, "claw hammer", 2005),
        (6, "hammer handle", 2006),
        (7, "ladder", 2007),
        (8, "ladder", 2008),
        (9, "apple hammer", 2009),
        (30, "!!!", 2010),
    ]
    return pd.DataFrame(rows, columns=["id", "title", "made"])


@pytest.fixture(scope="session")
def shop_log():
    """Cooks 101 to 103 and builders 201 to 203; 300 rated everything the lowest."""
    rows = [(user, item, 5) for user in (101, 102, 103) for item in (1, 2, 3)]
    rows += [(user, item, 5) for user in (201, 202, 203) for item in (4, 5, 6)]
    rows = [row for row in rows if row not in [(101, 3, 5), (201, 6, 5)]]
    rows += [(101, 4, 1), (201, 1, 1), (202, 7, 3), (203, 8, 3), (300, 1, 1), (300, 4, 1)]
    rows += [(103, 30, 4)]
    return pd.DataFrame(rows, columns=["user", "item", "rating"])


@pytest.fixture(scope="session")
def shop_path(tmp_path_factory, shop_items, shop_log):
    path = tmp_path_factory.mktemp("shop") / "ws"
    qkvsearch.build(path, items=shop_items, interactions=shop_log, encoder="corpus")
    return path


@pytest.fixture(scope="session")
def shop(shop_path):
    return Engine(shop_path)


@pytest.fixture
def shop_copy(shop_path, tmp_path):
    """The workspace of a shop of the test's own, which it may change."""
    return Path(shutil.copytree(shop_path, tmp_path / "shop"))


@pytest.fixture
def films_path(movies_path, tmp_path):
    """The workspace of movies of the test's own, which it may change."""
    return Path(shutil.copytree(movies_path, tmp_path / "films"))


@pytest.fixture
def films(films_path):
    with Engine(films_path) as engine:
        yield engine


@pytest.fixture
def former_builds_stay(monkeypatch):
    """After every publication all builds are what they were: they share files by hard links, and to
    write into one of them would change others.
    """
    publish = Workspace.publish

    def checked(self, *args, **kwargs):
        entry = publish(self, *args, **kwargs)
        assert self.damaged_files() == []
        return entry

    monkeypatch.setattr(Workspace, "publish", checked)


# --- matrices ---


@pytest.fixture
def checkerboard():
    """Even users meet even items and odd users odd ones, but for the pairs on the diagonal."""
    users, items = np.indices((12, 10))
    return csr_matrix(((users + items) % 2 == 0) & (users != items), dtype=np.float32)


@pytest.fixture
def scattered():
    """40 users × 30 items with confidences; user 3 and item 5 have no interactions."""
    rng = np.random.default_rng(0)
    matrix = random_array((40, 30), density=0.2, rng=rng, data_sampler=rng.random).tolil()
    matrix[3, :] = 0
    matrix[:, 5] = 0
    matrix = csr_matrix(matrix, dtype=np.float32)
    matrix.data = 0.5 + 2 * matrix.data
    return matrix


@pytest.fixture
def planted():
    """Ratings = 3 + biases + two tastes, little noise; four fifths to train on, one to test."""
    rng = np.random.default_rng(1)
    tastes = rng.normal(size=(120, 2)) @ rng.normal(size=(2, 80)) * 0.7
    biases = 0.4 * rng.normal(size=(120, 1)) + 0.4 * rng.normal(size=(1, 80))
    ratings = 3 + biases + tastes + 0.05 * rng.normal(size=tastes.shape)
    part = rng.random(ratings.shape)
    users, items = np.indices(ratings.shape)
    train, test = (
        csr_matrix((ratings[chosen], (users[chosen], items[chosen])), shape=ratings.shape)
        for chosen in (part < 0.4, (part > 0.4) & (part < 0.5))
    )
    return train, test


# --- the command line as a person meets it: arguments in, stdout, stderr and an exit code out ---


@dataclass(frozen=True)
class Answer:
    code: int
    stdout: str
    stderr: str

    def json(self):
        """The one value that a command which succeeded has printed."""
        assert self.code == 0, self.stderr
        return json.loads(self.stdout)


@pytest.fixture(scope="session")
def home(tmp_path_factory):
    """A home of our own, so that the samples are built into it once and nothing outside changes."""
    return tmp_path_factory.mktemp("home")


@pytest.fixture
def surroundings(home, tmp_path, monkeypatch):
    """An empty folder to work in and a terminal of 80 columns."""
    monkeypatch.chdir(tmp_path)
    for name in (
        *("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"),
        *("APPDATA", "LOCALAPPDATA"),
    ):
        monkeypatch.setenv(name, str(home))
    monkeypatch.setenv("COLUMNS", "80")
    for name in ("QKVSEARCH_WORKSPACE", "NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def qkv(surroundings, capsys, monkeypatch):
    """Runs `qkvsearch` in this process."""

    def run(*args, stdin=""):
        typed = io.TextIOWrapper(io.BytesIO(stdin.encode()), encoding="utf-8")
        monkeypatch.setattr(sys, "stdin", typed)
        capsys.readouterr()
        with pytest.raises(SystemExit) as stopped:
            main([str(arg) for arg in args])
        return Answer(stopped.value.code, *capsys.readouterr())

    return run


@pytest.fixture
def qkv_process(surroundings):
    """Runs `qkvsearch`, or other code, in a process of its own, for exit codes and signals."""

    def run(*args, code="from qkvsearch.cli import main; main()", **options):
        done = subprocess.run(
            [sys.executable, "-c", code, *map(str, args)],
            capture_output=True,
            text=True,
            encoding="utf-8",
            env={**os.environ, "PYTHONUTF8": "1"},
            **options,
        )
        return Answer(done.returncode, done.stdout, done.stderr)

    return run


@pytest.fixture
def without_privileges():
    """As a user who owns nothing, where the tests run as root, whom no mode keeps from anything.

    Modules are found in folders that such a user may not see: import them before.
    """

    @contextmanager
    def drop():
        if os.geteuid() != 0:
            yield
            return
        os.seteuid(65534)
        try:
            yield
        finally:
            os.seteuid(0)

    return drop


# --- a browser, one a process: without Playwright or Chromium its tests skip, none is fetched ---


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Mark what takes a browser as slow, and keep the tests of a file in one process.

    A file's fixtures are then made once instead of once in each process.
    """
    for item in items:
        if "chromium" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.slow)
        if item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group(item.path.relative_to(ROOT).as_posix()))


@pytest.fixture(scope="session")
def chromium():
    """Headless."""
    playwright = pytest.importorskip("playwright.sync_api", reason="needs qkvsearch[browser]")
    names = ("chromium", "chromium-browser", "google-chrome")
    path = next(filter(None, map(shutil.which, names)), None)
    if path is None:
        pytest.skip("no chromium on the path")
    with playwright.sync_playwright() as running:
        browser = running.chromium.launch(executable_path=path, timeout=1000 * WITHIN)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def browsing(chromium):
    """A context of the browser, as long as the block lasts."""

    @contextmanager
    def opened(**options):
        with chromium.new_context(**options) as context:
            context.set_default_timeout(1000 * WITHIN)
            yield context

    return opened


@pytest.fixture(scope="session")
def expect(chromium):
    """Playwright's assertions, which wait: what a key does may come after the key."""
    from playwright.sync_api import expect

    expect.set_options(timeout=1000 * WITHIN)
    return expect


@pytest.fixture(scope="session")
def axe():
    """axe-core, as a script to be run in a page."""
    installed = Path(__file__).parents[1] / "node_modules/axe-core/axe.min.js"
    path = Path(os.environ.get("AXE_CORE") or installed)
    if not path.is_file():
        pytest.skip("no axe-core: npm install axe-core, or its axe.min.js in AXE_CORE")
    return path.read_text(encoding="utf-8")
