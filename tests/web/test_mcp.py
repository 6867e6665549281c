"""`/mcp` of a server: behind the same guard as the API, and by the rights of who asks."""

import asyncio
import json
import shutil
from concurrent.futures import ThreadPoolExecutor

import pytest

pytest.importorskip("mcp", reason="needs qkvsearch[mcp]")

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from tests.agents.test_hosts import ADDRESSES

OWNER, SEARCH = "token-of-the-owner-1234567890", "token-of-a-page-1234567890"
ACCEPT = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
READING = {"describe", "search", "recommend", "similar", "show", "why"}


@pytest.fixture(scope="module")
def tokens(tmp_path_factory):
    """The files of the owner's token and of one to search with."""
    folder = tmp_path_factory.mktemp("tokens")
    (folder / "owner").write_text(OWNER)
    (folder / "search").write_text(SEARCH)
    return {"token_file": folder / "owner", "search_tokens": (folder / "search",)}


@pytest.fixture(scope="module")
def owned(asking, shop_path, tokens, tmp_path_factory):
    """A server with both tokens, whose agents may record."""
    path = shutil.copytree(shop_path, tmp_path_factory.mktemp("owned") / "ws")
    with asking(path, mcp=True, allow_record=True, **tokens) as client:
        yield client


def post(client, method, params=None, token=None, **headers):
    """What a request of the protocol is answered."""
    if token is not None:
        headers["Authorization"] = f"Bearer {token}"
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params or {}}
    return client.post("/mcp", content=json.dumps(body), headers=ACCEPT | headers)


def call(client, tool, token=None, **arguments):
    """What a tool answers, or its error."""
    answer = post(client, "tools/call", {"name": tool, "arguments": arguments}, token)
    assert answer.status_code == 200, answer.text
    return answer.json().get("result") or answer.json()["error"]


def tools(client, token=None):
    listed = post(client, "tools/list", token=token).json()["result"]["tools"]
    return {tool["name"]: set(tool["inputSchema"]["properties"]) for tool in listed}


def test_it_is_there_only_if_it_is_asked_for(asking, shop_path):
    with asking(shop_path) as client:
        assert post(client, "tools/list").status_code == 404
    with asking(shop_path, mcp=True) as client:
        assert set(tools(client)) == READING
        found = call(client, "search", query="red apple")["structuredContent"]["hits"]
        assert found[0]["title"] == "red apple"


def test_it_answers_posts_alone(asking, shop_path):
    with asking(shop_path, mcp=True) as client:
        for method in ("GET", "DELETE", "PUT"):
            answer = client.request(method, "/mcp")
            assert (answer.status_code, answer.headers["Allow"]) == (405, "POST, OPTIONS")


def test_the_guard_is_that_of_the_api(owned):
    assert post(owned, "tools/list").status_code == 401
    assert post(owned, "tools/list", token="another-token-1234567890").status_code == 401
    foreign = post(owned, "tools/list", token=OWNER, Origin="http://evil.example")
    assert foreign.status_code == 403
    too_long = post(owned, "tools/list", {"x": "y" * 1_100_000}, OWNER)
    assert too_long.status_code == 413
    assert too_long.headers["Content-Type"] == "application/problem+json"


def test_a_token_to_search_with_neither_records_nor_names_a_user(owned):
    assert set(tools(owned, OWNER)) == READING | {"record"}
    found = tools(owned, SEARCH)
    assert set(found) == READING
    assert not {"user", "strict_user"} & set().union(*found.values())
    assert call(owned, "search", SEARCH, query="red apple")["structuredContent"]["hits"]
    assert "no tool 'record'" in call(owned, "record", SEARCH, user="x", item=1)["message"]
    assert call(owned, "recommend", SEARCH, user="101")["isError"]


def test_what_is_recorded_over_http_can_be_undone_over_http(owned):
    recorded = call(owned, "record", OWNER, user="new", item=3)["structuredContent"]["recorded"]
    headers = {"Authorization": f"Bearer {OWNER}"}
    rows = owned.get("/api/v1/users/new/history", headers=headers).json()["rows"]
    assert [row["id"] for row in rows] == [3]
    undone = owned.delete(f"/api/v1/record/{recorded['batch']}", headers=headers)
    assert undone.status_code == 200


def test_the_limits_are_those_of_the_api(asking, shop_path):
    with asking(shop_path, mcp=True, threads=1, waiting=-1) as client:
        busy = call(client, "search", query="apple")
        assert "too many requests at once" in busy["structuredContent"]["error"]
    with asking(shop_path, mcp=True, seconds=0.0) as client:
        late = call(client, "search", query="apple")
        assert "no answer within" in late["structuredContent"]["error"]
    with asking(shop_path, mcp=True) as client:
        far = call(client, "why", query="apple", rank=10**6)
        assert "`rank`" in far["structuredContent"]["error"]
        assert "100,000" in far["structuredContent"]["error"]


def test_a_line_of_the_log_names_the_address(asking, shop_path, caplog):
    with asking(shop_path, mcp=True) as client, caplog.at_level("INFO", "qkvsearch.access"):
        post(client, "tools/list")
    assert json.loads(caplog.records[-1].message)["path"] == "/mcp"


# --- a real server, asked as docs/agents.md tells hosts to ---


def sent_by(entry):
    """The headers that a host sends, with the token in place of its name."""
    headers = dict(entry.get("headers", {}))
    if "bearer_token_env_var" in entry:
        headers = {"Authorization": "Bearer TOKEN"}
    return {name: value.replace("TOKEN", OWNER) for name, value in headers.items()}


async def tools_over_http(address, headers, mode):
    http_client = httpx2.AsyncClient(headers=headers, timeout=300)
    transport = streamable_http_client(address, http_client=http_client)
    async with Client(transport, read_timeout_seconds=300, mode=mode) as client:
        found = await client.call_tool("search", {"query": "red apple"})
        assert found.structured_content["hits"][0]["title"] == "red apple"
        return {tool.name for tool in (await client.list_tools()).tools}


@pytest.mark.slow
def test_hosts_of_old_and_new_versions_are_answered_by_several_workers(serving, shop_path, tokens):
    words = ["--mcp", "--workers", "2", "--token-file", str(tokens["token_file"])]
    with serving(shop_path, *words) as server:
        for entry in ADDRESSES:
            address = entry.get("url") or entry["httpUrl"]
            assert address == "http://127.0.0.1:8000/mcp"
            for mode in ("auto", "legacy"):
                asked = tools_over_http(server.url + "/mcp", sent_by(entry), mode)
                # The browser of other tests may run a loop in this thread.
                with ThreadPoolExecutor(1) as pool:
                    assert pool.submit(asyncio.run, asked).result() == READING
