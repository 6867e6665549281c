"""A small catalog of films that do not exist, and a workspace that holds it."""

import numpy as np
import pandas as pd
import pytest

from qkvsearch.store import BuildContents, CatalogRows, Workspace
from qkvsearch.tables.dataset import read_dataset
from qkvsearch.tables.ids import Ids

FILMS = [
    (30, "Kettle (1995)", 1995, "Drama|War", 4.5),
    (4, "Teapot, The (1999)", 1999, "Comedy", 2.0),
    (7, "Anchor (1950)", 1950, "Drama", None),
    (8, "Anchor (2004)", 2004, "Comedy|War", 3.0),
    (100, "L'Été (bleu) (1980)", None, None, 1.5),
]


@pytest.fixture(scope="session")
def make_catalog():
    """Films by (id, title, year, genres, score), or those above."""

    def make(films=FILMS):
        frame = pd.DataFrame(films, columns=["id", "title", "year", "genres", "score"])
        return read_dataset(frame, None).catalog

    return make


@pytest.fixture(scope="session")
def make_contents(make_catalog):
    """Contents of a base: films, or those above."""

    def make(films=FILMS, users=("5", "12"), **arrays):
        catalog = make_catalog(films)
        arrays = arrays or {"numbers": np.arange(5.0), "words": np.array(["a", "żó"])}
        facts = {"n_items": len(catalog)}
        return BuildContents(CatalogRows.of(catalog), Ids(users), arrays, facts)

    return make


@pytest.fixture
def workspace(tmp_path, make_contents):
    workspace = Workspace(tmp_path / "ws")
    workspace.publish(make_contents(), "build")
    return workspace


@pytest.fixture(scope="session")
def catalog(tmp_path_factory, make_contents):
    """Look-ups in the films above; in the order of the ids: 4, 7, 8, 30, 100."""
    workspace = Workspace(tmp_path_factory.mktemp("films"))
    workspace.publish(make_contents(), "build")
    return workspace.open().catalog
