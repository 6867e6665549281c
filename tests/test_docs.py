"""The documentation is not stale: generated pages, links, commands and names that it mentions."""

from __future__ import annotations

import importlib.util
import re
import shlex
from pathlib import Path

import pytest

import qkvsearch
from qkvsearch.cli import COMMANDS, group

ROOT = Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("datasets/*.md")])
SHELL = re.compile(r"```(?:sh|console)\n(.*?)```", re.DOTALL)

pytestmark = pytest.mark.skipif(not (ROOT / "docs").is_dir(), reason="not run from a checkout")


def test_the_command_reference_is_what_generate_writes():
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs" / "generate.py")
    generate = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generate)
    written = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
    assert written == generate.page(), "run python docs/generate.py"
    assert all(f"## qkvsearch {command}\n" in written for command in COMMANDS)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_link_to_a_file_leads_somewhere(page):
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_command_line_shown_is_one_that_the_parser_takes(page):
    for block in SHELL.findall(page.read_text(encoding="utf-8")):
        for line in block.splitlines():
            for command in re.findall(r"(?:^|&& |\$ )qkvsearch (?! )([^&|]*)", line):
                words = shlex.split(command, comments=True)
                if "…" not in words:
                    parse(words)


def parse(words):
    """Raises a usage error where an option or command does not exist."""
    context = group.make_context("qkvsearch", list(words), resilient_parsing=False)
    command, name = group, None
    rest = [*context._protected_args, *context.args]
    while rest and hasattr(command, "resolve_command"):
        name, command, rest = command.resolve_command(context, rest)
        context = command.make_context(name, list(rest), parent=context)
        rest = [*context._protected_args, *context.args] if hasattr(command, "commands") else []


def test_the_python_page_names_everything_that_is_public():
    page = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
    for name in qkvsearch.__all__:
        assert re.search(rf"\b{name}\b", page), name


@pytest.mark.parametrize("name", ["python.md", "attention.md"])
def test_a_page_of_python_runs_from_top_to_bottom(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs" / name).read_text(encoding="utf-8")
    code = "\n".join(re.findall(r"```python\n(.*?)```", page, re.DOTALL))
    exec(compile(code, f"docs/{name}", "exec"), {})


def test_the_formats_page_names_every_json_field():
    page = (ROOT / "docs" / "formats.md").read_text(encoding="utf-8")
    fields = (
        "rank", "id", "title", "score", "weight", "heads", "predicted_rating", "parts", "because",
        "query_position", "key_position", "visible", "protocol", "metrics", "baselines",
    )  # fmt: skip
    for field in fields:
        assert f"`{field}`" in page, field


def test_every_script_that_a_text_names_is_there():
    texts = [*PAGES, *ROOT.glob("qkvsearch/**/*.py")]
    for text in texts:
        for name in re.findall(r"benchmarks/\w+\.py", text.read_text(encoding="utf-8")):
            assert (ROOT / name).is_file(), f"{text.relative_to(ROOT)} names {name}"
