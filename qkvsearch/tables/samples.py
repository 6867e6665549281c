"""The bundled data sets: films with ratings, videos with watches."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from qkvsearch.errors import DataError


@dataclass(frozen=True)
class Sample:
    """A bundled data set: its files in `datasets/`."""

    about: str
    items: str
    interactions: str

    def path(self, name: str) -> Path:
        return datasets_folder() / name

    def fingerprint(self) -> str:
        """Return a checksum, so that a workspace of older data is not used again."""
        digest = hashlib.sha256()
        for name in (self.items, self.interactions):
            digest.update(self.path(name).read_bytes())
        return digest.hexdigest()[:12]


SAMPLES = {
    "videos": Sample("invented videos with simulated watches", "videos.csv", "watches.csv"),
    "movies": Sample("real films with simulated ratings", "movies.csv", "ratings.csv"),
}


def sample(name: str) -> Sample:
    """Return a bundled data set by name. Raises `DataError` that lists the names."""
    try:
        return SAMPLES[name]
    except KeyError:
        names = ", ".join(f"sample:{name}" for name in SAMPLES)
        raise DataError(f"no sample {name!r}; there are {names}") from None


def datasets_folder() -> Path:
    """Return the folder, in an installed package or at the top of a checkout."""
    package = Path(str(files("qkvsearch")))
    installed = package / "datasets"
    return installed if installed.is_dir() else package.parent / "datasets"
