"""What the BLAS of NumPy and SciPy is set to, whoever set it."""

from threadpoolctl import threadpool_info


def blas_threads():
    """The number of threads of each BLAS library that is loaded for NumPy or SciPy.

    Other packages, such as Milvus Lite, bring one of their own, which our code does not call.
    """
    return [
        one["num_threads"]
        for one in threadpool_info()
        if one["user_api"] == "blas" and ("numpy" in one["filepath"] or "scipy" in one["filepath"])
    ]
