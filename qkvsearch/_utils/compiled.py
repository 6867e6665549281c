"""Functions compiled by numba. They release Python's lock (GIL): threads run in parallel."""

import builtins
import os
import pickle
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import CodeType, ModuleType
from typing import Any

# numba reads its settings from this file of the current folder, if it can import yaml: when it is
# imported, and whenever it compiles. It unpickles code from the cache folder that the file names.
CONFIG_MODULE, CONFIG_FILE = "numba.core.config", ".numba_config.yaml"
# The ends of the names of numba's classes for caches in the folder that XDG_CACHE_HOME names.
IN_USER_CACHE = ("UserWideCacheLocator", "ZipCacheLocator")


class _ConfigLoader(SourceFileLoader):
    """Load numba's settings without a config file and without yaml."""

    def get_code(self, fullname: str) -> CodeType | None:
        code = super().get_code(fullname)
        if code is None:
            return None
        # numba looks for a regular file of this name. The null device is not one.
        constants = (os.devnull if each == CONFIG_FILE else each for each in code.co_consts)
        return code.replace(co_consts=tuple(constants))

    def exec_module(self, module: ModuleType) -> None:
        # Only this module has these built-in functions.
        module.__dict__["__builtins__"] = vars(builtins) | {"__import__": _import_but_yaml}
        super().exec_module(module)


def _import_but_yaml(name: str, *args: Any, **keywords: Any) -> Any:
    if name == "yaml":
        raise ImportError(name)
    return __import__(name, *args, **keywords)


class _ConfigFinder(MetaPathFinder):
    """Find numba's module of settings, and leave all other modules to Python."""

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> ModuleSpec | None:
        if fullname != CONFIG_MODULE:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and isinstance(spec.loader, SourceFileLoader):
            spec.loader = _ConfigLoader(spec.loader.name, spec.loader.path)
        return spec


@contextmanager
def _ignoring_the_current_folder() -> Iterator[None]:
    """Import numba so that it takes nothing from the current folder.

    Only this one module of numba is loaded in another way, so that other threads may import what
    they like in the meantime. Where numba is imported already, its settings are those of whoever
    imported it.
    """
    finder = _ConfigFinder()
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


with _ignoring_the_current_folder():
    from llvmlite import ir
    from numba import njit, types
    from numba.core import cgutils
    from numba.core.caching import CompileResultCacheImpl, FunctionCache, IndexDataCacheFile
    from numba.extending import intrinsic


def _absolute_locator(locator: Any) -> Any:
    """Return a class that is like numba's locator of the user's cache, in an absolute folder.

    Under an empty or relative XDG_CACHE_HOME, which the XDG specification says to ignore, numba's
    would be a folder of the current one, and numba would unpickle what lies there.
    """

    class AbsoluteCacheLocator(locator):
        _cache_path: str

        def __init__(self, py_func: Any, py_file: str) -> None:
            super().__init__(py_func, py_file)
            if not os.path.isabs(self._cache_path):
                name = os.path.basename(self._cache_path)
                self._cache_path = os.path.join(os.path.expanduser("~/.cache/numba"), name)

    return AbsoluteCacheLocator


class _CacheImpl(CompileResultCacheImpl):
    _locator_classes: Any = tuple(
        _absolute_locator(each) if each.__name__.endswith(IN_USER_CACHE) else each
        for each in CompileResultCacheImpl._locator_classes
    )


# What reading the code of an older version raises, which names a class that is gone or renamed. An
# upgrade leaves such files in place, and numba reads them before it sees that they are old.
OF_OLDER_VERSION = (AttributeError, ImportError, EOFError, pickle.UnpicklingError)


class CacheFile(IndexDataCacheFile):
    """numba's files of a compiled function. What cannot be read is compiled anew."""

    def _load_index(self) -> dict[Any, str]:
        try:
            found: dict[Any, str] = super()._load_index()
        except OF_OLDER_VERSION:
            return {}
        return found

    def _load_data(self, name: str) -> Any:
        try:
            return super()._load_data(name)
        except OF_OLDER_VERSION:
            return None


class _Cache(FunctionCache):
    """The cache on disk of a compiled function: beside its source, or in the user's cache."""

    _impl_class = _CacheImpl

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        self._cache_file = CacheFile(
            cache_path=self._cache_path,
            filename_base=self._impl.filename_base,
            source_stamp=self._impl.locator.get_source_stamp(),
        )


# All of fastmath, except that NaNs are kept.
KEEPS_NANS = {"reassoc", "contract", "arcp", "nsz"}


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function for arrays of finite numbers."""
    return _compiled(function, True)


def compiled_for_any(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function for arrays that may contain NaNs, which stay NaNs."""
    return _compiled(function, KEEPS_NANS)


def _compiled(function: Callable[..., Any], fastmath: Any) -> Callable[..., Any]:
    """Compile a function, cached on disk for the next process if possible."""
    # error_model: divides as NumPy does, for a check of every divisor would prevent vectorization.
    # forceinline: otherwise code compiled just now and the same code from the cache differ in the
    # last bits of their results.
    options = {"nogil": True, "fastmath": fastmath, "error_model": "numpy", "forceinline": True}
    dispatcher: Any = njit(**options)(function)
    # Without a cache where install and home folder are read-only, as in a container.
    with suppress(RuntimeError):
        dispatcher._cache = _Cache(function)
    return dispatcher


def _prefetch(_typing: Any, array: Any, row: Any, column: Any) -> Any:
    """Prefetch array[row, column] into the processor's cache; for compiled functions only.

    It changes no result. It saves time where rows are read in an irregular order, which the
    processor cannot predict.
    """

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        array_type, *index_types = signature.args
        indices = [
            context.cast(builder, value, index_type, types.intp)
            for value, index_type in zip(values[1:], index_types, strict=True)
        ]
        struct = context.make_array(array_type)(context, builder, values[0])
        address = cgutils.get_item_pointer(context, builder, array_type, struct, indices)
        byte, flag = ir.IntType(8).as_pointer(), ir.IntType(32)
        instruction = builder.module.declare_intrinsic(
            "llvm.prefetch", [byte], ir.FunctionType(ir.VoidType(), [byte, flag, flag, flag])
        )
        # For reading (0), kept in all caches (3), data (1): the flags of LLVM's language reference.
        builder.call(instruction, [builder.bitcast(address, byte), flag(0), flag(3), flag(1)])
        return context.get_dummy_value()

    return types.void(array, row, column), generate


prefetch: Any = intrinsic(_prefetch)
