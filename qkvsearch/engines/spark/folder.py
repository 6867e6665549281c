"""Files and folders that driver and executors share: on a common disk, HDFS, S3 or the like."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qkvsearch.errors import QkvError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SUCCESS = "_SUCCESS"


def as_uri(path: str | Path) -> str:
    """Return a path with the scheme of its file system; without one it is on this machine.

    >>> as_uri("s3a://bucket/log"), as_uri("/tmp/my log.parquet")
    ('s3a://bucket/log', 'file:///tmp/my log.parquet')
    """
    return str(path) if "://" in str(path) else f"file://{Path(path).absolute().as_posix()}"


class Folder:
    """A folder, or a file, by its path or by a URI that Hadoop knows."""

    def __init__(self, spark: SparkSession, path: str | Path) -> None:
        self._spark, self.uri = spark, as_uri(path).rstrip("/")
        self._jvm: Any = spark._jvm

    def uri_of(self, name: str = "") -> str:
        return f"{self.uri}/{name}" if name else self.uri

    def exists(self, name: str = "") -> bool:
        return bool(self._system().exists(self._path(name)))

    def is_folder(self) -> bool:
        return self.exists() and bool(self._system().getFileStatus(self._path()).isDirectory())

    def names(self) -> list[str]:
        """Return the names of the files and folders in it, sorted; none where it does not exist."""
        statuses = self._system().listStatus(self._path()) if self.exists() else []
        return sorted(status.getPath().getName() for status in statuses)

    def files(self) -> list[str]:
        """Return the URIs of the files that Spark reads of it, as `_metadata` has them, sorted."""
        start, files = len(self._path().toUri().getPath()), []
        listing = self._system().listFiles(self._path(), True)
        while listing.hasNext():
            uri = listing.next().getPath().toUri()
            names = str(uri.getPath())[start:].split("/")
            if not any(name.startswith((".", "_")) for name in names):
                files.append(str(uri.toString()).replace("file:///", "file:/", 1))
        return sorted(files)

    def size_and_time(self) -> tuple[int, int]:
        """Return the bytes of all files in it, and when it was changed, in milliseconds."""
        system = self._system()
        size = system.getContentSummary(self._path()).getLength()
        return int(size), int(system.getFileStatus(self._path()).getModificationTime())

    def write_json(self, name: str, content: Any) -> None:
        """Write a small file, which appears whole or not at all."""
        system, unfinished = self._system(), self._path(f".{name}.unfinished")
        stream = system.create(unfinished, True)
        stream.write(bytearray(json.dumps(content).encode()))
        stream.close()
        system.delete(self._path(name), False)
        if not system.rename(unfinished, self._path(name)):
            raise QkvError(f"{self.uri_of(name)}: cannot be written")

    def read_json(self, name: str) -> Any:
        """Return the content of a small file, None where it does not exist."""
        if not self.exists(name):
            return None
        stream = self._system().open(self._path(name))
        try:
            return json.loads(bytes(stream.readAllBytes()))
        finally:
            stream.close()

    def write_table(self, name: str, frame: DataFrame) -> None:
        """Write a frame as Parquet. Raise `QkvError` where not all of it arrives."""
        frame.write.mode("overwrite").parquet(self.uri_of(name))
        parts = Folder(self._spark, self.uri_of(name)).names()
        if SUCCESS not in parts or not any(part.startswith("part-") for part in parts):
            raise QkvError(
                f"{self.uri}: the executors write somewhere else: name a folder that this machine "
                "and all executors share with `checkpoint`"
            )

    def read_table(self, name: str) -> DataFrame:
        return self._spark.read.parquet(self.uri_of(name))

    def remove(self, name: str = "") -> None:
        self._system().delete(self._path(name), True)

    def remove_parent_if_empty(self) -> None:
        parent = Folder(self._spark, self.uri.rpartition("/")[0])
        if parent.is_folder() and not parent.names():
            parent.remove()

    def _path(self, name: str = "") -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(self.uri_of(name))

    def _system(self) -> Any:
        return self._path().getFileSystem(self._spark._jsc.hadoopConfiguration())
