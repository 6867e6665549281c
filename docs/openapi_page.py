"""Makes docs/api.md of the server's own OpenAPI document; docs/generate.py writes it."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

Json = Mapping[str, Any]
INTRODUCTION = """# HTTP API

Written by `python docs/generate.py` from the OpenAPI document, `/openapi.json` of every server;
edit the routes, not this page. [server.md](server.md) shows how to start a server and ask it.

{description}

A parameter that must be given is **bold**. Each route can answer with an error:

{error}
"""
TYPES = {
    "string": "text", "integer": "whole number", "number": "number", "boolean": "true or false",
    "null": "null", "object": "object",
}  # fmt: skip
CODE = re.compile(r"(`[^`]*`)")


def document() -> Json:
    """Return the OpenAPI document of a server over a small workspace, which does not change it."""
    import pandas as pd

    import qkvsearch
    from qkvsearch.web.app import make_app
    from qkvsearch.web.settings import ServerSettings

    with tempfile.TemporaryDirectory() as folder:
        workspace, shared = Path(folder, "workspace"), Path(folder, "shared")
        shared.mkdir()
        items = pd.DataFrame({"id": [1, 2], "title": ["Red kettle", "Green anchor"]})
        qkvsearch.build(workspace, items=items, encoder="corpus").close()
        return make_app(ServerSettings(workspace, "kettles", shared)).openapi()


def page(api: Json) -> str:
    """Return the page: each route with its parameters, then the objects that they send."""
    (error,) = api["components"]["responses"].values()
    parts = [INTRODUCTION.format(description=api["info"]["description"], error=_errors(error))]
    rows = [
        [f"[`{_name(method, path)}`](#{_anchor(_name(method, path))})", route["summary"]]
        for path, method, route in _routes(api)
    ]
    parts += [table(["route", "what it does"], rows)]
    for path, method, route in _routes(api):
        parts += [f"## {_name(method, path)}", *_route(route)]
    parts.append("## Objects")
    for name, schema in sorted(api["components"]["schemas"].items()):
        parts += [f"### {name}", *_object(schema)]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def _routes(api: Json) -> Iterator[tuple[str, str, Json]]:
    for path, methods in api["paths"].items():
        for method, route in methods.items():
            yield path, method, route


def _name(method: str, path: str) -> str:
    return f"{method.upper()} {path}"


def _anchor(heading: str) -> str:
    """Return the anchor of a heading, as a repository's browser and the site make it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def _errors(error: Json) -> str:
    """Return a list of the statuses that the description of an error explains."""
    opening, *statuses = re.split(r"(?<=[.]) (?=\d{3}[,:])", error["description"])
    return "\n".join([f"{opening}\n", *(f"- {status}" for status in statuses)])


def _route(route: Json) -> Iterator[str]:
    yield f"{route['summary']}. {_prose(route.get('description', ''))}".strip()
    parameters = [
        _row(one["name"], one.get("required", False), one["schema"], one.get("description", ""))
        for one in route.get("parameters", [])
    ]
    if parameters:
        yield table(["parameter", "type", "default", "meaning"], parameters)
    for what, message in (("Body", route.get("requestBody")), ("Answer", _answer(route))):
        for kind, content in (message or {}).get("content", {}).items():
            note = "" if kind == "application/json" else f", as {kind}"
            yield f"{what}: {_type(content['schema'])}{note}."


def _answer(route: Json) -> Json | None:
    return next((route["responses"][code] for code in route["responses"] if code[0] == "2"), None)


def _object(schema: Json) -> Iterator[str]:
    if "description" in schema:
        yield _prose(schema["description"])
    required = schema.get("required", [])
    rows = [
        _row(name, name in required, one, one.get("description", ""))
        for name, one in schema.get("properties", {}).items()
    ]
    if rows:
        yield table(["field", "type", "default", "meaning"], rows)


def _row(name: str, required: bool, schema: Json, description: str) -> list[str]:
    """Return what a table says of a parameter or a field: name, type, default, meaning."""
    given = f"**`{name}`**" if required else f"`{name}`"
    return [given, _type(schema), _default(schema), _prose(description)]


def _default(schema: Json) -> str:
    value = schema.get("default")
    if value is None or value == [] or value == "":
        return ""
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def _type(schema: Json) -> str:
    """Return what a schema allows, in words; an object with a name is a link to it."""
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[-1]
        return f"[{name}](#{_anchor(name)})"
    choices = schema.get("anyOf") or schema.get("oneOf")
    if choices:
        return " or ".join(dict.fromkeys(_type(one) for one in choices if one != {"type": "null"}))
    values = schema.get("enum") or ([schema["const"]] if "const" in schema else [])
    if values:
        return " or ".join(f"`{value}`" for value in values)
    if schema.get("type") == "array":
        return f"list of {_plural(_type(schema.get('items', {})))}"
    return TYPES.get(schema.get("type", ""), "anything")


def _plural(kind: str) -> str:
    return kind + "s" if kind in ("whole number", "number", "object") else kind


def table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table without the columns that are empty in every row."""
    kept = [j for j in range(len(columns)) if any(row[j] for row in rows)]
    lines = [[columns[j] for j in kept], ["---"] * len(kept)]
    lines += [[row[j].replace("|", r"\|") for j in kept] for row in rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _prose(text: str) -> str:
    """Return a description as one line of Markdown. Signs that people type are no emphasis."""
    parts = CODE.split(" ".join(text.split()))
    return "".join(
        part if part.startswith("`") else re.sub(r"([*<])", r"\\\1", part) for part in parts
    )
