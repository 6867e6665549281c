"""Each extra in a network namespace of its own: no name is looked up, and no file is left behind.

A server on the address of the name server writes down what it is asked. HOME and TMPDIR are empty
folders.
"""

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

RESOLVER = """
import socket, sys
server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
server.bind((sys.argv[1], 53))
open(sys.argv[2], "a").close()
while True:
    question, client = server.recvfrom(2048)
    with open(sys.argv[2], "ab") as asked:
        asked.write(question[12:] + b"\\n")
    # There is no such name.
    server.sendto(question[:2] + b"\\x81\\x83" + question[4:6] + bytes(6) + question[12:], client)
"""
INSIDE = """
ip link set lo up && ip addr add "$SERVER/32" dev lo 2>/dev/null
"$PYTHON" -c "$RESOLVER" "$SERVER" "$ASKED" &
resolver=$!
for _ in $(seq 100); do [ -e "$ASKED" ] && break; sleep .05; done
"$PYTHON" -P -c "$CODE"
code=$?
kill $resolver
exit $code
"""
DATA = """
import os, time
import pandas as pd
import qkvsearch as qkv
items = pd.DataFrame({"id": range(20), "title": [f"{w} sea {w}" for w in "abcdefghijklmnopqrst"]})
log = pd.DataFrame({"user": [k % 9 for k in range(90)], "item": [k % 20 for k in range(90)]})
"""
# What uses each extra, and the modules that it needs.
EXTRAS = {
    "none": (
        "",
        f"""{DATA}
engine = qkv.build('ws', items=items, interactions=log, encoder='corpus')
engine.search('sea')
engine.recommend(likes=[1])
""",
    ),
    "fast": (
        "onnx onnxruntime",
        """
from onnx import TensorProto, helper
values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1]) for name in "xy"]
graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "g", values[:1], values[1:])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
from qkvsearch.text.pretrained.onnx_layers import _session
import numpy, os
assert _session(model.SerializeToString()).run(None, {"x": numpy.ones(1, "f4")})[0] == 1
assert "ORT_DISABLE_TELEMETRY" not in os.environ
""",
    ),
    "encoders": (
        "wordllama tokenizers safetensors",
        f"{DATA}engine = qkv.build('ws', items=items, encoder='static'); engine.search('sea')",
    ),
    "milvus": (
        "pymilvus milvus_lite",
        f"""{DATA}
engine = qkv.build('ws', items=items, encoder='corpus', keys='milvus:keys.db')
engine.search('sea')
assert os.stat('keys.db').st_mode & 0o077 == 0, oct(os.stat('keys.db').st_mode)
""",
    ),
    "parquet": (
        "pyarrow",
        f"{DATA}items.to_parquet('i.parquet'); qkv.build('ws', 'i.parquet', encoder='corpus')",
    ),
    "plot": (
        "matplotlib",
        f"""{DATA}
from qkvsearch.cli import main
qkv.build('ws', items=items, interactions=log, encoder='corpus')
try:
    main(['-w', 'ws', 'evaluate', 'recommend', '--plot', 'p.png'])
except SystemExit as stopped:
    assert not stopped.code
assert os.path.exists('p.png') and 'MPLCONFIGDIR' not in os.environ
""",
    ),
    "xlsx": (
        "openpyxl",
        f"{DATA}items.to_excel('items.xlsx'); qkv.build('ws', 'items.xlsx', encoder='corpus')",
    ),
    "web": (
        "fastapi fastapi_offline uvicorn prometheus_client httpx2",
        "import qkvsearch.web.app, qkvsearch.web.server",
    ),
    "spark": ("pyspark", "from qkvsearch.engines.spark import session; import pyspark.sql"),
    "train": (
        "torch",
        """
import qkvsearch as qkv
from qkvsearch.embeddings import NextItem
log = qkv.Interactions.from_columns([k % 9 for k in range(90)], [k % 7 for k in range(90)],
                                    times=range(90))
NextItem(4, n_heads=1, max_iter=1, random_state=0).fit(log)
""",
    ),
}


def can_unshare():
    tools = all(shutil.which(name) for name in ("unshare", "ip"))
    return tools and subprocess.run(["unshare", "-n", "true"], capture_output=True).returncode == 0


def name_server():
    file = Path("/etc/resolv.conf")
    lines = file.read_text().splitlines() if file.exists() else []
    servers = [line.split()[1] for line in lines if line.startswith("nameserver ")]
    return next((server for server in servers if "." in server), "127.0.0.1")


@pytest.fixture(scope="module")
def namespace():
    if not can_unshare():
        pytest.skip("`unshare -n` makes no network namespace here")


# onnxruntime is known to ask; the others are slow to import.
QUICK = ("fast",)
CASES = [pytest.param(each, marks=[] if each in QUICK else pytest.mark.slow) for each in EXTRAS]


@pytest.mark.parametrize("extra", CASES)
def test_an_extra_asks_for_no_name_and_leaves_no_file(extra, namespace, tmp_path):
    modules, code = EXTRAS[extra]
    missing = [name for name in modules.split() if importlib.util.find_spec(name) is None]
    if missing:
        pytest.skip(f"{', '.join(missing)} not installed")
    folders = {name: tmp_path / name for name in ("home", "tmp", "work")}
    for folder in folders.values():
        folder.mkdir()
    asked = tmp_path / "asked"
    environment = {name: value for name, value in os.environ.items() if "XDG" not in name}
    environment |= {
        "HOME": str(folders["home"]), "TMPDIR": str(folders["tmp"]), "PYTHON": sys.executable,
        "RESOLVER": RESOLVER, "CODE": code, "ASKED": str(asked), "SERVER": name_server(),
    }  # fmt: skip
    done = subprocess.run(
        ["unshare", "-n", "bash", "-c", INSIDE],
        cwd=folders["work"],
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert asked.exists(), "the resolver did not start"
    assert asked.read_bytes() == b""
    found = [each for name in ("home", "tmp") for each in folders[name].rglob("*")]
    left = [str(each) for each in found if not each.is_dir()]
    assert [each for each in left if "qkvsearch" not in each.replace(str(tmp_path), "")] == []
