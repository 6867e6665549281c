"""Builds that are changed behind the back of those who open them."""

from contextlib import closing

from qkvsearch._utils.callbacks import silent
from qkvsearch.learn.merge import merged_contents
from qkvsearch.store import Workspace


def republished(path, change):
    """The current build of a workspace once more, with what `change` does to its contents."""
    workspace = Workspace(path)
    with closing(workspace.open()) as build:
        contents = merged_contents(build, silent)
        change(contents)
        workspace.publish(contents, "test")
