"""Files that are sent whole."""

from collections.abc import Collection
from pathlib import Path
from typing import Any

from starlette.datastructures import MutableHeaders
from starlette.responses import Response
from starlette.staticfiles import StaticFiles
from starlette.types import Receive, Scope, Send


class WholeFiles(StaticFiles):
    """The files of a folder. A request for a range gets the whole file, as HTTP allows: they are
    small, and a wrong range is no error then.
    """

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = MutableHeaders(raw=list(scope["headers"]))
        del headers["range"]
        await super().__call__({**scope, "headers": headers.raw}, receive, send)

    async def get_response(self, path: str, scope: Scope) -> Response:
        """Return a file that says that it has no ranges."""
        response = await super().get_response(path, scope)
        response.headers["Accept-Ranges"] = "none"
        return response


class ListedFiles(WholeFiles):
    """Some files of a folder, and no others of it, such as its Python."""

    def __init__(self, folder: Path, names: Collection[str]) -> None:
        super().__init__(directory=folder)
        self.names = names

    def lookup_path(self, path: str) -> Any:
        return super().lookup_path(path) if path in self.names else ("", None)
