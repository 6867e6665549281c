"""`qkvsearch model`: lists the encoders, fetches one, says where it is."""

import hashlib
import json

import pytest

from qkvsearch._utils.user_files import MODELS_VARIABLE
from qkvsearch.text.pretrained import fetch as models


@pytest.fixture
def run(qkv, tmp_path, monkeypatch):
    monkeypatch.setenv(MODELS_VARIABLE, str(tmp_path / "models"))
    return lambda *args, quiet=False: qkv(*["-q"] * quiet, "model", *args)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with the files of the model, small ones whose sums are the known ones."""
    sums = {}
    for name in models.MINILM_SUMS:
        path = tmp_path / "source" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
        sums[name] = hashlib.sha256(name.encode()).hexdigest()
    monkeypatch.setattr(models, "MINILM_SUMS", sums)
    return tmp_path / "source"


def test_list_says_what_is_installed_and_where(run, folder, tmp_path):
    rows = {row["name"]: row for row in run("list", "--format", "json").json()}
    assert list(rows) == ["corpus", "static", "minilm", "e5"]
    assert rows["corpus"]["installed"] is True
    for name in ("minilm", "e5"):
        assert (rows[name]["installed"], rows[name]["path"]) == (False, None)
    run("fetch", "minilm", "--from", folder)
    lines = map(json.loads, run("list", "--format", "jsonl").stdout.splitlines())
    row = next(line for line in lines if line["name"] == "minilm")
    assert (row["installed"], row["path"]) == (True, str(tmp_path / "models" / "minilm"))


def test_fetch_prints_where_and_says_the_licence(run, folder, tmp_path):
    answer = run("fetch", "minilm", "--from", folder)
    assert (answer.code, answer.stdout) == (0, f"{tmp_path / 'models' / 'minilm'}\n")
    assert "Licence: Apache-2.0" in answer.stderr
    assert run("fetch", "minilm", "--from", folder, quiet=True).stderr == ""


def test_another_model_or_a_missing_file_is_refused(run):
    assert run("fetch", "static").code == 1
    assert run("fetch", "minilm", "--from", "nowhere").code == 2
