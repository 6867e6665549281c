"""A server as a process, and clients that ask it at a steady rate, whether it keeps up or not."""

from __future__ import annotations

import asyncio
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import quote
from urllib.request import urlopen

UP_WITHIN, ANSWERS_WITHIN = 60, 20


@dataclass(frozen=True)
class Load:
    """What came back: seconds from when each request was due to its last byte, sorted, and how many
    failed.
    """

    seconds: list[float]
    errors: int

    def quantile(self, share: float) -> float:
        return self.seconds[min(int(len(self.seconds) * share), len(self.seconds) - 1)]


@contextmanager
def serving(workspace: Path, *options: str) -> Iterator[int]:
    """`qkvsearch serve` on a free port of loopback, which comes back once it answers."""
    command = [sys.executable, "-m", "qkvsearch", "-w", str(workspace), "serve", "--port", "0"]
    with TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        with log.open("w") as written:
            process = subprocess.Popen([*command, *options], stderr=written)
        try:
            port = _port(log, process)
            urlopen(f"http://127.0.0.1:{port}/api/v1/health", timeout=UP_WITHIN).close()
            yield port
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(30)


def _port(log: Path, process: subprocess.Popen[bytes]) -> int:
    until = time.monotonic() + UP_WITHIN
    while time.monotonic() < until and process.poll() is None:
        if found := re.search(r"http://127\.0\.0\.1:(\d+)/", log.read_text()):
            return int(found[1])
        time.sleep(0.02)
    raise RuntimeError(f"the server did not come up: {log.read_text()}")


def load(port: int, queries: Sequence[str], rate: float, seconds: float) -> Load:
    """So many requests a second, each on a connection of its own."""
    return asyncio.run(_load(port, queries, rate, seconds))


async def _load(port: int, queries: Sequence[str], rate: float, seconds: float) -> Load:
    took: list[float] = []
    errors = 0

    async def ask(query: str, due: float) -> None:
        nonlocal errors
        try:
            async with asyncio.timeout(ANSWERS_WITHIN):
                errors += not await _answered(port, query)
        except (OSError, TimeoutError):
            errors += 1
        took.append(time.perf_counter() - due)

    began = time.perf_counter()
    async with asyncio.TaskGroup() as tasks:
        for i in range(int(rate * seconds)):
            due = began + i / rate
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            tasks.create_task(ask(queries[i % len(queries)], due))
    return Load(sorted(took), errors)


async def _answered(port: int, query: str) -> bool:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    path = f"/api/v1/search?q={quote(query)}&k=10"
    head = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n"
    writer.write(head.encode())
    await writer.drain()
    answer = await reader.read()
    writer.close()
    return answer.startswith(b"HTTP/1.1 200")
