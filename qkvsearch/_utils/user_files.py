"""Where the user's own files are kept on this machine: models, lessons done, samples built."""

from __future__ import annotations

import os
import sys
from pathlib import Path

NAME = "qkvsearch"
MODELS_VARIABLE = "QKVSEARCH_MODELS"


def models_folder() -> Path:
    """Where fetched models live: `QKVSEARCH_MODELS`, or a folder among the user's data."""
    if named := os.environ.get(MODELS_VARIABLE):
        return Path(named)
    return data_folder() / "models"


def data_folder() -> Path:
    """What should stay: in the place that the system has for the data of programs."""
    if sys.platform == "win32":
        home = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        home = Path.home() / "Library" / "Application Support"
    else:
        home = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share")
    return home / NAME


def samples_folder() -> Path:
    """What can be built again: the workspaces of the bundled samples."""
    import click

    return Path(click.get_app_dir(NAME), "samples")
