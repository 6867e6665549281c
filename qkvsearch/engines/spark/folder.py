"""A folder that driver and executors see: of a disk that they share, HDFS, S3 or the like."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qkvsearch.errors import QkvError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SUCCESS = "_SUCCESS"


def as_uri(path: str | Path) -> str:
    """With the scheme of its file system, that of this machine where it has none.

    >>> as_uri("s3a://bucket/log"), as_uri("/tmp/log.parquet")
    ('s3a://bucket/log', 'file:///tmp/log.parquet')
    """
    return str(path) if "://" in str(path) else Path(path).absolute().as_uri()


class Folder:
    """path: a local one, or a URI of a file system that Hadoop knows."""

    def __init__(self, spark: SparkSession, path: str | Path) -> None:
        self._spark, self.uri = spark, as_uri(path).rstrip("/")
        self._jvm: Any = spark._jvm

    def file(self, name: str = "") -> str:
        return f"{self.uri}/{name}" if name else self.uri

    def has(self, name: str) -> bool:
        return bool(self._system().exists(self._path(name)))

    def size_and_time(self, name: str = "") -> tuple[int, int]:
        """Bytes, of a folder those of all files in it, and when it was changed, in milliseconds."""
        system, path = self._system(), self._path(name)
        size = system.getContentSummary(path).getLength()
        return int(size), int(system.getFileStatus(path).getModificationTime())

    def start(self, name: str, n_bytes: int) -> bytes:
        """The first bytes of a file."""
        stream = self._system().open(self._path(name))
        try:
            return bytes(stream.readNBytes(n_bytes))
        finally:
            stream.close()

    def names(self) -> list[str]:
        """Of the files and folders in it, sorted; none where it is not there."""
        system = self._system()
        if not system.exists(self._path("")):
            return []
        return sorted(found.getPath().getName() for found in system.listStatus(self._path("")))

    def is_folder(self) -> bool:
        system = self._system()
        return bool(
            system.exists(self._path("")) and system.getFileStatus(self._path("")).isDirectory()
        )

    def write(self, name: str, content: bytes) -> None:
        """A small file, which appears whole or not at all."""
        system, unfinished = self._system(), self._path(f".{name}.unfinished")
        stream = system.create(unfinished, True)
        stream.write(bytearray(content))
        stream.close()
        system.delete(self._path(name), False)
        if not system.rename(unfinished, self._path(name)):
            raise QkvError(f"{self.file(name)}: cannot be written")

    def write_json(self, name: str, content: Any) -> None:
        self.write(name, json.dumps(content).encode())

    def read_json(self, name: str) -> Any:
        """None where it is not there."""
        if not self.has(name):
            return None
        stream = self._system().open(self._path(name))
        try:
            return json.loads(bytes(stream.readAllBytes()))
        finally:
            stream.close()

    def write_table(self, name: str, frame: DataFrame) -> None:
        """As Parquet; `has_table` once all of it is there."""
        frame.write.mode("overwrite").parquet(self.file(name))
        if not self.has_table(name):
            raise QkvError(
                f"{self.uri}: not all executors write where this machine reads: name a folder that "
                "all of them share with `checkpoint`"
            )

    def has_table(self, name: str) -> bool:
        parts = Folder(self._spark, self.file(name)).names()
        return SUCCESS in parts and any(part.startswith("part-") for part in parts)

    def read_table(self, name: str) -> DataFrame:
        return self._spark.read.parquet(self.file(name))

    @property
    def parent(self) -> Folder:
        return Folder(self._spark, self.uri.rpartition("/")[0])

    def remove_if_empty(self) -> None:
        if self.is_folder() and not self.names():
            self.remove()

    def remove(self, name: str = "") -> None:
        self._system().delete(self._path(name), True)

    def _path(self, name: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(self.file(name))

    def _system(self) -> Any:
        configuration = self._spark._jsc.hadoopConfiguration()
        return self._path("").getFileSystem(configuration)
