"""The documentation is not stale: generated pages, figures, sessions, links, commands and names."""

import importlib
import re
import shlex
from functools import cache
from pathlib import Path

import pytest

from qkvsearch._utils import limits
from qkvsearch.cli import COMMANDS, group
from qkvsearch.text.pretrained.static import find_package
from tests.scripts import script

ROOT = Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("datasets/*.md")])
GUIDES = sorted(ROOT.glob("docs/**/*.md"))
HOW_TOS = sorted(ROOT.glob("docs/how-to/*.md"))
FENCE = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
SHELL = re.compile(r"```(?:sh|console)\n(.*?)```", re.DOTALL)
# Of what a session prints; other digits are ids and counts.
DECIMAL = re.compile(r"\d+\.\d+(?:e-\d+)?")

pytestmark = pytest.mark.skipif(not (ROOT / "docs").is_dir(), reason="not run from a checkout")


def test_the_command_reference_is_what_generate_writes():
    generate = script("generate")
    written = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
    assert written == generate.page(), "run python docs/generate.py"
    assert all(f"## qkvsearch {command}\n" in written for command in COMMANDS)


def test_the_table_of_limits_is_what_they_are():
    text = (ROOT / "docs" / "trust.md").read_text(encoding="utf-8")
    assert text == script("generate").trust_page(text), "run python docs/generate.py"
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines()]
    shown = {row[0]: row[1:] for row in rows if len(row) == 4}
    for limit in limits.ALL.values():
        assert shown[limit.what][:2] == [f"{limit.default:,}", limit.beyond]


def test_the_rules_on_what_a_row_means_are_those_of_the_code():
    text = (ROOT / "docs" / "formats.md").read_text(encoding="utf-8")
    assert text == script("generate").formats_page(text), "run python docs/generate.py"


def test_the_page_of_the_http_api_is_that_of_the_server():
    pytest.importorskip("fastapi")
    api = script("openapi_page")
    written = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    assert written == api.page(api.document()), "run python docs/generate.py"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_link_to_a_file_or_a_heading_leads_somewhere(page):
    links = re.findall(r"\]\((?!https?:)([^)#]*)(?:#([^)]+))?", page.read_text(encoding="utf-8"))
    for target, heading in links:
        path = page.parent / target if target else page
        assert path.exists(), target
        if heading and path.suffix == ".md":
            assert heading in headings(path), f"{target}#{heading}"


@cache
def headings(page):
    """The anchors of a page's headings, as a repository's browser makes them."""
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    titles = re.findall(r"^#+ (.*)", text, re.MULTILINE)
    named = set(re.findall(r'<a id="([^"]+)">', text))
    # The text of a link is what is shown of it.
    shown = [re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", title) for title in titles]
    return named | {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in shown}


@pytest.mark.parametrize(
    "page", sorted(ROOT.glob("docs/**/*.md")), ids=lambda page: page.relative_to(ROOT).as_posix()
)
def test_every_page_has_its_place_in_the_site(page):
    site = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    assert f": {page.relative_to(ROOT / 'docs').as_posix()}\n" in site, (
        "add it to nav in mkdocs.yml"
    )


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_command_line_shown_is_one_that_the_parser_takes(page):
    for block in SHELL.findall(page.read_text(encoding="utf-8")):
        for line in block.replace("\\\n", " ").splitlines():
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


def sessions():
    """The commands shown with their output: page, arguments, output."""
    docs = script("sessions")
    for page in docs.PAGES:
        for command, output in docs.sessions(page):
            yield pytest.param(shlex.split(command), output, id=f"{page.name}: {command}")


@pytest.mark.parametrize(
    ("command", "output"), list(sessions()) if (ROOT / "docs").is_dir() else []
)
@pytest.mark.skipif(find_package() is None, reason="the sessions have the encoders extra")
def test_a_session_prints_what_the_page_shows(qkv, command, output):
    answer = qkv(*command[1:])
    assert answer.code == 0, answer.stderr
    assert_same(answer.stdout, output)


def assert_same(printed, shown):
    """The same words, and the same numbers but for the last digits."""
    assert lined_up(printed) == lined_up(shown), "run python docs/sessions.py"
    assert decimals(printed) == pytest.approx(decimals(shown), rel=0.02, abs=0.002)


BLOCK = re.compile(r"```(console|python)\n(.*?)```", re.DOTALL)


@pytest.mark.slow
@pytest.mark.parametrize(
    "page",
    sorted(ROOT.glob("docs/how-to/*.md")),
    ids=lambda page: page.relative_to(ROOT).as_posix(),
)
@pytest.mark.skipif(find_package() is None, reason="the sessions have the encoders extra")
def test_a_how_to_runs_from_top_to_bottom(qkv, tmp_path, monkeypatch, page):
    monkeypatch.chdir(tmp_path)
    docs, names = script("sessions"), {}
    text = page.read_text(encoding="utf-8")
    docs.write_files(text, tmp_path)
    ran = 0
    for kind, block in BLOCK.findall(text):
        if kind == "python":
            exec(compile(block, page.name, "exec"), names)
        for command, output in docs.COMMAND.findall(block):
            if command.startswith("curl "):
                pytest.importorskip("fastapi")
                assert_same(docs.answered(command, tmp_path), output)
            else:
                answer = qkv(*shlex.split(command)[1:])
                assert answer.code == 0, answer.stderr
                assert_same(answer.stdout, output)
            ran += 1
    assert ran


def lined_up(text):
    """The words and whole numbers, without the spaces of columns."""
    return [DECIMAL.sub("#", line).split() for line in text.strip().splitlines()]


def decimals(text):
    return [float(number) for number in DECIMAL.findall(text)]


# --- figures ---


@pytest.fixture
def figures(monkeypatch):
    monkeypatch.syspath_prepend(ROOT)
    return importlib.import_module("benchmarks.figures")


def test_the_pages_show_the_figures_of_the_results(figures):
    page, readme = (path.read_text(encoding="utf-8") for path in (figures.PAGE, figures.README))
    assert page == figures.page(), "run python -m benchmarks.figures"
    assert readme == figures.readme(readme), "run python -m benchmarks.figures"


def test_what_the_readme_says_was_measured_is_in_its_table(figures):
    text = figures.README.read_text(encoding="utf-8")
    start, table = text.split(figures.START)
    (sentence,) = re.findall(r"^Measured .*$", start, re.MULTILINE)
    measured = re.findall(r"(?<!\d)\.\d+", sentence)
    assert len(measured) == 2
    assert all(number in table for number in measured)


def test_every_script_and_no_other_has_its_place_on_the_page(figures):
    sections = [one.script for one in (*figures.CLAIMS, *figures.DEFAULTS)]
    scripts = {path.stem for path in SCRIPTS}
    assert len(sections) == len(set(sections))
    assert set(sections) == scripts
    kept = {path.stem for path in figures.RESULTS.glob("*.jsonl")}
    assert kept <= scripts


SCRIPTS = sorted([*ROOT.glob("benchmarks/claims/*.py"), *ROOT.glob("benchmarks/defaults/*.py")])


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_a_script_finds_all_that_it_names(monkeypatch, path):
    """It is run now and then only, so that a name that has moved would be noticed late."""
    monkeypatch.syspath_prepend(ROOT)
    script = importlib.import_module(f"benchmarks.{path.parent.name}.{path.stem}")
    assert all(map(callable, script.PARTS.values()))
    assert script.PARTS


# --- names ---


@pytest.mark.slow
@pytest.mark.parametrize("name", ["python.md", "attention.md"])
def test_a_page_of_python_runs_from_top_to_bottom(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs" / name).read_text(encoding="utf-8")
    code = "\n".join(re.findall(r"```python\n(.*?)```", page, re.DOTALL))
    exec(compile(code, f"docs/{name}", "exec"), {})
