"""Where a run takes place: on servers of its own, or on a pair that runs already."""

from __future__ import annotations

from dataclasses import dataclass

from conformance.options import RunOptions
from conformance.serving.engine import Engines
from conformance.serving.standing import Standing, look_at_pair


@dataclass(frozen=True)
class Site:
    """The options with what the servers decide, the engines, and the pair that was met."""

    options: RunOptions
    engines: Engines
    standing: Standing | None = None


def site_of(options: RunOptions) -> Site:
    """Look at the engine that is installed, or at the servers whose URLs are given.

    Raises :class:`SuiteError` when there is neither.
    """
    if options.attachment is None:
        return Site(options, Engines(options.server_python, options.server_pythons))
    standing = look_at_pair(options.attachment, options.model)
    named = options.model_copy(update={"model": standing.model})
    return Site(named, standing.engines(), standing)
