"""Public data sets: downloaded from their official address, checked and unpacked."""

from __future__ import annotations

import hashlib
import http.client
import os
import re
import urllib.error
import urllib.request
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path

from qkvsearch._utils.callbacks import Progress
from qkvsearch._utils.files import folder_beside
from qkvsearch._utils.limits import DOWNLOAD, PACKED_FILES, check_unpacked
from qkvsearch.errors import DataError, suggest

MOVIELENS = "https://files.grouplens.org/datasets/movielens"
TERMS = "research use only; see its README"
TIMEOUT = 30
CHUNK = 1 << 18
LENGTH = re.compile("[0-9]{1,18}")


@dataclass(frozen=True)
class Download:
    """A zip archive with one folder in it.

    md5: the published checksum; None for a data set that changes with time, whose checksum is in a
    file beside the archive.
    """

    name: str
    about: str
    address: str
    megabytes: float
    md5: str | None
    terms: str = TERMS


DOWNLOADS = {
    name: Download(name, about, f"{MOVIELENS}/{name}.zip", megabytes, md5)
    for name, md5, megabytes, about in (
        ("ml-latest-small", None, 1, "100,000 ratings, 9,700 films, tags"),
        ("ml-100k", "0e33842e24a9c977be4e0107933c0723", 5, "100,000 ratings, 1,682 films"),
        ("ml-1m", "c4d9eecfca2ab87c1945afe126590906", 6, "1 million ratings, 3,883 films"),
        ("ml-10m", "ce571fd55effeba0271552578f2648bd", 63, "10 million ratings, 10,681 films"),
        ("ml-20m", "cd245b17a1ae2cc31bb14903e1204af3", 190, "20 million ratings, 27,278 films"),
        ("ml-25m", "6b51fb2759a8657d3bfcbfc42b592ada", 250, "25 million ratings, 62,423 films"),
    )
}


def find_download(name: str) -> Download:
    """Return a data set by name. Raises `DataError` with near matches."""
    if name not in DOWNLOADS:
        names = list(DOWNLOADS)
        raise DataError(
            f"no data set {name!r}{suggest(name, names)} (there are {', '.join(names)})"
        )
    return DOWNLOADS[name]


def fetch(download: Download, folder: Path, progress: Progress | None = None) -> Path:
    """Download, check and unpack a data set, and return its folder inside `folder`.

    A failed download leaves nothing behind. Raises `DataError` that names the address and what to
    do.
    """
    target = folder / download.name
    if target.exists():
        raise DataError(f"{target} is there already; remove it to fetch it again")
    with folder_beside(target) as partial:
        try:
            archive = partial / "archive.zip"
            md5 = _download(download.address, archive, progress)
            published = download.md5 or _published_md5(f"{download.address}.md5")
            if md5 != published:
                raise DataError(
                    f"{download.address}: the checksum is {md5}, published is {published}; "
                    "the download was cut or changed: try again"
                )
            os.replace(_unpack(archive, partial / "unpacked"), target)
        except (OSError, http.client.HTTPException) as error:
            raise DataError(f"{download.address}: {_reason(error)}") from None
    return target


def _download(address: str, path: Path, progress: Progress | None) -> str:
    """Write a file to `path`, and return its MD5."""
    digest, done = hashlib.md5(usedforsecurity=False), 0
    with urllib.request.urlopen(address, timeout=TIMEOUT) as response, path.open("wb") as file:
        length = response.headers.get("Content-Length") or ""
        total = int(length) if LENGTH.fullmatch(length) else 0
        while chunk := response.read(CHUNK):
            done += len(chunk)
            DOWNLOAD.check(done, address)
            file.write(chunk)
            digest.update(chunk)
            if progress is not None:
                progress("downloading", done, max(total, done))
    return digest.hexdigest()


def _published_md5(address: str) -> str:
    """Return the checksum in a file of the form `<sum>  <name>` or `MD5 (<name>) = <sum>`."""
    with urllib.request.urlopen(address, timeout=TIMEOUT) as response:
        words = response.read(1000).decode("ascii", errors="replace").split()
    return next((word.lower() for word in words if len(word) == 32 and word.isalnum()), "missing")


def _unpack(archive: Path, folder: Path) -> Path:
    """Unpack an archive, and return the one folder inside. `extractall` keeps every member inside
    `folder`, makes no links, and writes no more of a member than its size in the archive.
    """
    try:
        with zipfile.ZipFile(archive) as packed:
            members = packed.infolist()
            PACKED_FILES.check(len(members), archive.name)
            size = sum(member.file_size for member in members)
            check_unpacked(size, archive.stat().st_size, archive.name)
            packed.extractall(folder)
    except (zipfile.BadZipFile, zlib.error, RuntimeError, UnicodeError) as error:
        raise DataError(f"{archive.name}: not a zip archive: {error}") from None
    inside = [path for path in folder.iterdir() if path.is_dir() and path.name != "__MACOSX"]
    if len(inside) != 1:
        raise DataError(f"the archive holds {len(inside)} folders instead of one")
    return inside[0]


def _reason(error: OSError | http.client.HTTPException) -> str:
    if isinstance(error, urllib.error.HTTPError):
        return f"the server answered {error.code} {error.reason}"
    reason = getattr(error, "reason", None) or getattr(error, "strerror", None) or repr(error)
    return f"{reason}; check the connection, or download it by hand"
