"""A Spark cluster on the loopback address: a master and workers of one core each, by process id."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path

PATIENCE = 600


class Cluster:
    """`master`: its URL. `workers`: their processes, each of which leads a process group.
    gigabytes: of Java's memory that each of their executors has, a workers' process a little more.
    """

    def __init__(self, folder: Path, n_workers: int = 2, gigabytes: int = 1) -> None:
        import pyspark

        self.folder = folder
        home = Path(pyspark.__file__).parent
        source = str(Path(__file__).parents[2])
        self.environment = {
            **os.environ,
            "SPARK_HOME": str(home),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "PYSPARK_PYTHON": sys.executable,
            "PYSPARK_SUBMIT_ARGS": f"--conf spark.executor.memory={gigabytes}g pyspark-shell",
            "PYTHONPATH": os.pathsep.join(filter(None, [source, os.environ.get("PYTHONPATH")])),
        }
        self._class, self._memory = str(home / "bin" / "spark-class"), f"{1000 * gigabytes + 500}m"
        self._started: list[subprocess.Popen[bytes]] = []
        options = ["--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]
        self._start("master", "org.apache.spark.deploy.master.Master", *options)
        said = self._wait_for("master", "I have been elected leader")
        self.master = re.findall(r"spark://[\d.:]+", said)[0]
        self.workers = [self.add_worker() for _ in range(n_workers)]

    def add_worker(self) -> subprocess.Popen[bytes]:
        name = f"worker{len(self._started)}"
        folder = self.folder / name
        started = self._start(
            name, "org.apache.spark.deploy.worker.Worker", "-c", "1", "-m", self._memory,
            "--host", "127.0.0.1", "--webui-port", "0", "-d", str(folder), self.master,
        )  # fmt: skip
        self._wait_for(name, "Successfully registered")
        return started

    def kill(self, worker: subprocess.Popen[bytes]) -> None:
        """At once, with its executor and the Python processes of that."""
        for group in {os.getpgid(worker.pid)}:
            os.killpg(group, signal.SIGKILL)
        worker.wait()

    def stop(self) -> None:
        for process in reversed(self._started):
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def _start(self, name: str, *arguments: str) -> subprocess.Popen[bytes]:
        with (self.folder / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(
                [self._class, *arguments],
                env=self.environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._started.append(process)
        return process

    def _wait_for(self, name: str, text: str) -> str:
        """The log, once that is in it."""
        until = time.monotonic() + PATIENCE
        while text not in (log := (self.folder / f"{name}.log").read_text(errors="replace")):
            if time.monotonic() > until or self._started[-1].poll() is not None:
                raise RuntimeError(log[-2000:])
            time.sleep(0.2)
        return log


@contextmanager
def cluster(folder: Path, n_workers: int = 2, gigabytes: int = 1):
    found = None
    try:
        found = Cluster(folder, n_workers, gigabytes)
        yield found
    finally:
        if found is not None:
            found.stop()
