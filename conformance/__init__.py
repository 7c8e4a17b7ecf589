"""kv-conformance: knows whether a vLLM KV connector really works."""

from typing import TYPE_CHECKING

__all__ = ["__version__"]

if TYPE_CHECKING:
    __version__: str
else:

    def __getattr__(name: str) -> str:
        """The version, once somebody asks: finding it takes as long as a small server's start."""
        if name != "__version__":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib.metadata import PackageNotFoundError, version

        try:
            return version("kv-conformance")
        except PackageNotFoundError:  # a checkout on PYTHONPATH, not installed
            return "0+checkout"
