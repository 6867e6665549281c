"""The package as a whole: what an import costs, what the public names are, what the wheel holds."""

import doctest
import email
import json
import os
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import qkvsearch
from qkvsearch import errors
from qkvsearch.errors import install

ROOT = Path(__file__).parents[1]
LOCK = ROOT / ".ci" / "requirements.lock"
HEAVY = {"numpy", "pandas", "sklearn", "scipy", "numba", "rich"}
LISTED = "; import json, sys; print(json.dumps(sorted({m.split('.')[0] for m in sys.modules})))"
RUN = (
    "import sys; from qkvsearch.cli import main\ntry: main(sys.argv[1:])\nexcept SystemExit: pass\n"
)


def modules_after(code, *args):
    """Top-level modules that a fresh process has imported after running `code`."""
    done = subprocess.run(
        [sys.executable, "-c", code + LISTED.removeprefix("; "), *map(str, args)],
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=True,
        env={**os.environ, "PYTHONUTF8": "1"},
    )
    return set(json.loads(done.stdout.splitlines()[-1]))


@pytest.mark.parametrize(
    ("code", "args"),
    [("import qkvsearch\n", ()), (RUN, ["--help"]), (RUN, ["search", "--help"])],
    ids=["import", "help", "search help"],
)
def test_importing_and_help_load_nothing_heavy(code, args):
    loaded = modules_after(code, *args)
    assert "qkvsearch" in loaded
    assert not HEAVY & loaded


def test_search_and_recommend_load_neither_pandas_nor_scikit_learn(movies_path):
    for question in (
        ["search", "family animation", "--format", "json"],
        ["recommend", "--user", "u001", "--where", "year > 1990", "--explain"],
        ["similar", "Heat"],
    ):
        loaded = modules_after(RUN, "-w", movies_path, *question)
        assert "numpy" in loaded
        assert not {"pandas", "sklearn", "numba"} & loaded, question


def test_every_public_name_has_an_example():  # which runs, as those of all modules do
    finder = doctest.DocTestFinder(recurse=False)
    for name in qkvsearch.__all__:
        (found,) = finder.find(getattr(qkvsearch, name), name, globs={})
        assert found.examples, name


def test_an_unknown_name_is_an_ordinary_attribute_error():
    with pytest.raises(AttributeError, match="has no attribute 'serch'"):
        _ = qkvsearch.serch


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    pytest.importorskip("hatchling", reason="building the wheel needs hatchling")
    if not (ROOT / "pyproject.toml").is_file():
        pytest.skip("no pyproject.toml: these tests do not run from a checkout")
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (path,) = folder.glob("*.whl")
    return zipfile.ZipFile(path)


def test_the_wheel_ships_the_samples_and_the_type_marker(wheel):
    names = set(wheel.namelist())
    for file in ("movies.csv", "ratings.csv", "videos.csv", "watches.csv", "queries.tsv"):
        assert f"qkvsearch/datasets/{file}" in names
    assert "qkvsearch/py.typed" in names


def test_the_wheel_has_every_file_of_the_package_and_nothing_else(wheel):
    files = {
        path.relative_to(ROOT).as_posix()
        for path in ROOT.glob("qkvsearch/**/*")
        if path.is_file() and path.parent.name != "__pycache__"
    }
    names = set(wheel.namelist())
    assert files <= names
    assert {name.split("/")[0].split("-")[0] for name in names} == {"qkvsearch"}
    assert not [name for name in names if "test" in name or name.endswith((".pyc", ".nbc", ".nbi"))]


def test_the_version_is_the_one_of_the_wheel(wheel):
    (name,) = [name for name in wheel.namelist() if name.endswith(".dist-info/METADATA")]
    metadata = email.message_from_bytes(wheel.read(name))
    assert metadata["Version"] == qkvsearch.__version__
    assert f"\nversion: {qkvsearch.__version__}\n" in (ROOT / "CITATION.cff").read_text()
    assert f"\n## {qkvsearch.__version__} — " in (ROOT / "CHANGELOG.md").read_text("utf-8")


def canonical(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def pinned(path):
    found = re.findall(r"^([\w.-]+)==([^\s;]+)", path.read_text(), re.MULTILINE)
    return {canonical(name): version for name, version in found}


def test_the_wheel_lists_what_it_needs_as_a_bill_of_materials(wheel):
    (path,) = [name for name in wheel.namelist() if ".dist-info/sboms/" in name]
    bill = json.loads(wheel.read(path))
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    product = bill["metadata"]["component"]
    assert product["purl"] == f"pkg:pypi/qkvsearch@{qkvsearch.__version__}"

    (name,) = [name for name in wheel.namelist() if name.endswith(".dist-info/METADATA")]
    metadata = email.message_from_bytes(wheel.read(name))
    required, optional = set(), set()
    for line in map(Requirement, metadata.get_all("Requires-Dist")):
        extra = re.search(r"extra == '([\w-]+)'", str(line.marker).replace('"', "'"))
        if extra is None:
            required.add(canonical(line.name))
        elif extra[1] not in ("all", "bench", "browser", "docs", "test"):
            optional.add(canonical(line.name))
    scopes = {each["name"]: each["scope"] for each in bill["components"]}
    expected = dict.fromkeys(optional, "optional") | dict.fromkeys(required, "required")
    assert scopes == expected

    tested = pinned(ROOT / "constraints.txt")
    versions = {each["name"]: each.get("version") for each in bill["components"]}
    assert versions == {name: tested.get(name) for name in expected}
    (root,) = bill["dependencies"]
    assert root["ref"] == product["bom-ref"]
    assert root["dependsOn"] == [each["bom-ref"] for each in bill["components"]]


@pytest.mark.skipif(not LOCK.is_file(), reason="not in a checkout")
def test_what_ci_installs_is_what_was_tested():
    """`make lock` was run after the last change of versions or of requirements."""
    locked, tested = pinned(LOCK), pinned(ROOT / "constraints.txt")
    assert not [name for name in locked.keys() & tested.keys() if locked[name] != tested[name]]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    required = [*project["dependencies"], "pip", "setuptools"]
    for extra in ("encoders", "test", "browser", "milvus", "spark"):
        required += [line for line in extras[extra] if not line.startswith("qkvsearch")]
    assert {canonical(re.match(r"[\w.-]+", line)[0]) for line in required} <= locked.keys()


def test_extras_are_installed_from_the_source_or_from_the_index(monkeypatch, tmp_path):
    assert install("web") == "pip install -e '.[web]'"
    monkeypatch.setattr(errors, "__file__", str(tmp_path / "qkvsearch" / "errors.py"))
    assert install("web") == "pip install 'qkvsearch[web]'"
