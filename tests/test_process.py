"""What importing the package and its first use leave behind in a process: nothing."""

import json
import os
import subprocess
import sys

import pytest

STATE = """
import json, locale, os, signal, sys, threading, warnings
import numpy, scipy.sparse

def state():
    return {
        "environment": dict(os.environ),
        "filters": [str(each) for each in warnings.filters],
        "finders": [str(each) for each in sys.meta_path],
        "hidden": [name for name, module in list(sys.modules.items()) if module is None],
        "path": list(sys.path),
        "folder": os.getcwd(),
        "locale": locale.setlocale(locale.LC_ALL),
        "signals": [str(signal.getsignal(each)) for each in (signal.SIGINT, signal.SIGTERM)],
        "errors": numpy.geterr(),
        "random": int(numpy.random.get_state()[1].sum()),
        "limits": [sys.getrecursionlimit(), sys.getswitchinterval(), threading.stack_size()],
        "loaded": "yaml" in sys.modules,
    }

def changed(before):
    after = state()
    return [name for name in after if after[name] != before[name]]
"""
MATRIX = "scipy.sparse.random(20, 10, .4, 'csr', random_state=0)"
FIRST_USES = [
    "import qkvsearch, qkvsearch.attention, qkvsearch.embeddings",
    "from qkvsearch.attention.layers.basic import gelu; gelu(numpy.ones(2))",
    f"qkvsearch.ImplicitALS(2, random_state=0).fit({MATRIX})",
    f"qkvsearch.BiasedMF(2, random_state=0).fit({MATRIX})",
    f"qkvsearch.ItemNeighbours(2).fit({MATRIX}).scores([1])",
    "qkvsearch.CorpusEncoder(2).fit(['deep sea', 'red car'])",
    "import qkvsearch.evaluation.metrics",
]


def run(code, **environment):
    done = subprocess.run(
        [sys.executable, "-P", "-c", code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_first_uses_leave_the_process_as_it_was():
    steps = [f"{use}\nfound.append(changed(before))" for use in FIRST_USES]
    code = "\n".join([STATE, "before, found = state(), []", *steps, "print(json.dumps(found))"])
    found = json.loads(run(code, XDG_CACHE_HOME="relative"))
    assert dict(zip(FIRST_USES, found, strict=True)) == {use: [] for use in FIRST_USES}


@pytest.mark.slow
def test_pytorch_and_its_compiler_leave_nothing(tmp_path):
    pytest.importorskip("torch")
    code = f"""{STATE}
import qkvsearch as qkv
from qkvsearch.embeddings import NextItem
log = qkv.Interactions.from_columns([k % 9 for k in range(90)], [k % 7 for k in range(90)],
                                    times=range(90))
before = state()
NextItem(4, n_heads=1, max_iter=1, random_state=0).fit(log)
print(json.dumps(changed(before)))"""
    assert json.loads(run(code, TMPDIR=str(tmp_path))) == []
    assert list(tmp_path.iterdir()) == []


def test_other_threads_may_import_yaml_while_numba_is_imported(tmp_path):
    # The audit hook of the first thread has the second one import yaml as numba is half imported.
    code = """
import importlib, os, sys, threading
found, imported = [], []
def import_yaml():
    sys.modules.pop("yaml", None)
    try:
        imported.append(importlib.import_module("yaml").__name__)
    except ImportError as error:
        imported.append(str(error))
def in_another_thread():
    thread = threading.Thread(target=import_yaml)
    thread.start()
    thread.join()
def watch(event, arguments):
    if event == "import" and threading.current_thread() is threading.main_thread():
        if arguments[0] == "numba.core.config":
            in_another_thread()
        found.append("yaml" in sys.modules and sys.modules["yaml"] is None)
        found.append(os.environ.get("XDG_CACHE_HOME") != "relative")
sys.addaudithook(watch)
import qkvsearch._utils.compiled
from numba.core import config
print(len(found) > 100, any(found), config._HAVE_YAML, config._config_fname == os.devnull)
print(*imported)"""
    folder = tmp_path / "yaml"
    folder.mkdir()
    (folder / "__init__.py").touch()
    settings, imported = run(code, XDG_CACHE_HOME="relative", PYTHONPATH=str(tmp_path)).splitlines()
    assert settings.split() == ["True", "False", "False", "True"]
    assert imported == "yaml"


def test_a_relative_cache_folder_gets_no_compiled_code(tmp_path):
    source = tmp_path / "loop"
    source.mkdir()
    (source / "loop.py").write_text(
        "from qkvsearch._utils.compiled import compiled\n@compiled\ndef one(n):\n    return n + 1\n"
    )
    (source / "__pycache__").touch()  # no place for it beside the source
    folder = tmp_path / "here"
    folder.mkdir()
    code = f"import os; os.chdir({str(folder)!r}); from loop import one; print(one(1))"
    environment = {"PYTHONPATH": str(source), "XDG_CACHE_HOME": "relative", "HOME": str(tmp_path)}
    assert run(code, **environment) == "2\n"
    assert list(folder.iterdir()) == []
    assert list((tmp_path / ".cache" / "numba").rglob("*.nbi"))
