"""Over stdin and stdout: what docs/agents.md tells hosts to start, and how it begins and ends."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest

import qkvsearch
from qkvsearch.cli import agents

PAGE = Path(__file__).parents[2] / "docs" / "agents.md"
BLOCK = re.compile(r"```(json|toml|sh)\n(.*?)```", re.DOTALL)
READING = {"describe", "search", "recommend", "similar", "show", "why"}
TOKEN = "token-of-an-owner-1234567890"
WITHIN = 300


def entries():
    """What hosts are told about the server `shop`: the command with its words, or the address."""
    for kind, text in BLOCK.findall(PAGE.read_text("utf-8")):
        if kind == "sh":
            for line in text.splitlines():
                words = shlex.split(line)
                if words[:3] == ["claude", "mcp", "add"] and "--" in words:
                    command, *args = words[words.index("--") + 1 :]
                    yield {"command": command, "args": args}
                elif words[:3] == ["claude", "mcp", "add"]:
                    header = words[words.index("--header") + 1].split(": ")
                    yield {"url": words[6], "headers": dict([header])}
        else:
            whole = json.loads(text) if kind == "json" else tomllib.loads(text)
            ((_, servers),) = whole.items()
            yield servers["shop"]


ENTRIES = list(entries()) if PAGE.is_file() else []
COMMANDS = [entry for entry in ENTRIES if "command" in entry]
ADDRESSES = [entry for entry in ENTRIES if "command" not in entry]


def test_the_page_has_common_hosts_both_ways():
    assert (len(COMMANDS), len(ADDRESSES)) == (4, 4)
    # They start the same thing, so that one of them is started.
    assert len({(entry["command"], *entry["args"]) for entry in COMMANDS}) == 1
    assert len({entry.get("url") or entry["httpUrl"] for entry in ADDRESSES}) == 1
    for entry in ADDRESSES:
        secret = entry.get("headers", {}).get("Authorization") == "Bearer TOKEN"
        assert secret or "bearer_token_env_var" in entry


def test_the_configuration_starts_a_server_that_answers(starting, shop_path):
    entry = COMMANDS[0]
    assert entry["command"] == "qkvsearch"
    words = [str(shop_path) if word == "/home/me/shop" else word for word in entry["args"]]

    async def ask(client):
        tools = {tool.name for tool in (await client.list_tools()).tools}
        return tools, await client.call_tool("search", {"query": "red apple", "fields": ["made"]})

    tools, found = starting(*words).run(ask)
    assert tools == READING
    first = found.structured_content["hits"][0]
    assert (first["title"], first["made"]) == ("red apple", 2001)


def test_it_records_where_that_is_allowed_and_picks_up_a_new_build(starting, shop_copy):
    async def ask(client):
        recorded = await client.call_tool("record", {"user": "new", "item": "red apple"})
        before = await client.call_tool("show", {"item": "red apple"})
        with qkvsearch.open(shop_copy) as engine:
            history = [row["id"] for row in engine.history("new")]
            engine.remove("red apple")
        after = await client.call_tool("show", {"item": "red apple"})
        return recorded, before, after, history

    recorded, before, after, history = starting("-w", shop_copy, "mcp", "--allow-record").run(ask)
    assert (recorded.is_error, before.is_error, after.is_error) == (False, False, True)
    assert history == [1]


def test_a_sample_cannot_be_recorded_in(qkv):
    answer = qkv("-w", "sample:movies", "mcp", "--allow-record")
    assert answer.code == 1
    assert "cannot be changed" in answer.stderr


def test_without_the_sdk_the_command_says_what_to_install(qkv, shop_path, monkeypatch):
    monkeypatch.setattr(agents, "find_spec", lambda name: None)
    monkeypatch.setitem(sys.modules, "mcp", None)
    for words in (["mcp"], ["serve", "--mcp"]):
        answer = qkv("-w", shop_path, *words)
        assert answer.code == 1
        assert "[mcp]" in answer.stderr


def test_serve_allows_recording_to_agents_alone(qkv, shop_path):
    for words in (["--allow-record"], ["--mcp", "--allow-record", "--read-only"]):
        answer = qkv("-w", shop_path, "serve", *words)
        assert answer.code == 2
        assert "--allow-record" in answer.stderr


# --- the process ---

INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}


@pytest.fixture
def started(shop_path, home):
    """The process, as a host starts it."""
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "qkvsearch", "-w", str(shop_path), "mcp"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ | {"HOME": str(home)},
        text=True,
    )
    yield process
    process.kill()
    process.communicate()


def test_nothing_but_messages_is_on_stdout_and_it_ends_with_stdin(started):
    lines = ["nonsense", json.dumps(INITIALIZE)]
    started.stdin.write("\n".join(lines) + "\n")
    started.stdin.flush()
    first = json.loads(started.stdout.readline())
    assert first["result"]["serverInfo"]["name"] == "qkvsearch"
    assert "untrusted" in first["result"]["instructions"]
    rest, said = started.communicate(timeout=WITHIN)
    assert (rest, started.returncode) == ("", 0)
    assert said == "Serving ws to an agent over stdin and stdout (Ctrl-C stops).\n"


@pytest.mark.skipif(sys.platform == "win32", reason="Windows sends no such signal to one process")
def test_ctrl_c_ends_it_while_it_waits_for_a_line(started):
    assert started.stderr.readline().startswith("Serving ws")
    started.stdin.write(json.dumps(INITIALIZE) + "\n")
    started.stdin.flush()
    started.stdout.readline()
    started.send_signal(signal.SIGINT)
    assert started.wait(WITHIN) == 130
    assert started.stderr.read() == "Stopped.\n"


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="a pipe ends otherwise there")
def test_a_host_that_reads_no_more_ends_it_without_a_word(started):
    assert started.stderr.readline().startswith("Serving ws")
    started.stdout.close()
    started.stdin.write(json.dumps(INITIALIZE) + "\n")
    started.stdin.flush()
    time.sleep(0.1)
    started.stdin.close()
    assert started.wait(WITHIN) == 0
    assert started.stderr.read() == ""
    started.stdin, started.stdout = None, None
