"""Folders for the user's files: models, progress in lessons, built samples."""

import os
import sys
from pathlib import Path

NAME = "qkvsearch"
MODELS_VARIABLE = "QKVSEARCH_MODELS"


def models_folder() -> Path:
    """Return the folder of fetched models: `QKVSEARCH_MODELS`, or one in the data folder."""
    if named := os.environ.get(MODELS_VARIABLE):
        return Path(named)
    return data_folder() / "models"


def data_folder() -> Path:
    """Return the folder for data to keep, where the system stores the data of programs."""
    if sys.platform == "win32":
        home = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        home = Path.home() / "Library" / "Application Support"
    else:
        home = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share")
    return home / NAME


def cache_folder() -> Path:
    """Return the folder for files that can be made again, where the system stores such."""
    if sys.platform == "win32":
        home = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
        return home / NAME / "Cache"
    if sys.platform == "darwin":
        home = Path.home() / "Library" / "Caches"
    else:
        home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return home / NAME


def samples_folder() -> Path:
    """Return the folder of the built samples, which can be built again."""
    import click

    return Path(click.get_app_dir(NAME), "samples")
