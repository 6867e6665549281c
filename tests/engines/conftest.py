import importlib.util
import os
import shutil
import sys
from pathlib import Path

import pytest

# The cluster is the benchmarks' too.
sys.path.append(str(Path(__file__).parents[2]))


def missing():
    """Why no cluster can be started here; "" where one can."""
    if importlib.util.find_spec("pyspark") is None:
        return "pyspark is not installed"
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        return "there is no Java"
    return ""


@pytest.fixture(scope="session")
def spark_cluster(tmp_path_factory):
    """A master and two workers of one core each."""
    if why := missing():
        pytest.skip(why)
    from benchmarks.support.spark_cluster import cluster

    with cluster(tmp_path_factory.mktemp("spark")) as found:
        os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
        os.environ["PYTHONPATH"] = found.environment["PYTHONPATH"]
        yield found


@pytest.fixture(scope="session")
def spark(spark_cluster):
    """A session that the tests share; its URL is `engine`."""
    from pyspark.sql import SparkSession

    from qkvsearch.engines.spark.session import spark_session

    with spark_session(spark_cluster.master) as found:
        assert isinstance(found, SparkSession)
        yield found


@pytest.fixture(scope="session")
def engine(spark, spark_cluster):
    return spark_cluster.master
