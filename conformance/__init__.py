"""kv-conformance: knows whether a vLLM KV connector really works."""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("kv-conformance")
except PackageNotFoundError:  # a checkout on PYTHONPATH, not installed
    __version__ = "0+checkout"

__all__ = ["__version__"]
