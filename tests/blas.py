"""What BLAS is set to, whoever set it."""

from threadpoolctl import threadpool_info


def blas_threads():
    """The number of threads of each BLAS library that is loaded."""
    return [one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"]
