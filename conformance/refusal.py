"""A connector that does not start: refused in clear words, or died of something unclear.

A connector that cannot work on a platform must say so at start, within a bounded time, in words
that name the reason. An operator who reads ``'_StreamPlaceholder' has no attribute
'priority_range'`` (SimpleCPUOffloadConnector on a CPU, vLLM 0.32.0) learns nothing.
"""

from __future__ import annotations

import re

from conformance.errors import CheckFailed, NotHere, Refused, ServerStartError
from conformance.profile import Profile

START = "start/ready"

# What Python raises when a program goes wrong, not when it refuses.
_ACCIDENTS = re.compile(
    r"^(?:\w+\.)*(?:AttributeError|TypeError|KeyError|IndexError|NameError|"
    # "AssertionError: Encoder-decoder models are not currently supported with KV connectors"
    # (vLLM 0.32.0) is a refusal all the same.
    r"AssertionError(?!: .*\bsupport)|"
    r"UnboundLocalError|ZeroDivisionError|RecursionError|StopIteration)\b|"
    r"Segmentation fault|Fatal Python error|terminate called|core dumped"
)
# Says what is missing here, and nothing of the platform.
_PACKAGE = re.compile(
    r"^(?:\w+\.)*(?:ModuleNotFoundError|ImportError)\b|package is installed", re.IGNORECASE
)
_REASONS = re.compile(
    r"support|requir|install|not available|unavailable|only|need|must|missing|not set|"
    r"no module named|cannot find|not found|not enabled|not implemented|no accelerator|"
    r"when none is available",
    re.IGNORECASE,
)


_ABSENT = re.compile(
    r"connect|refused|reach|time[d ]*out|unavailable|not available|not running|no answer",
    re.IGNORECASE,
)


def names_absence(words: str) -> bool:
    """Whether the engine's last words say that somebody could not be reached."""
    return not _ACCIDENTS.search(words) and bool(_ABSENT.search(words))


def is_clear(words: str) -> bool:
    """Whether the engine's last words are a refusal with a reason, and not an accident."""
    return not _ACCIDENTS.search(words) and bool(_REASONS.search(words))


def reason_for(problem: ServerStartError, profile: Profile, device: str, cell: str) -> Exception:
    """What a failed start means for one cell; ``start/ready`` alone carries the blame.

    A clear refusal where the profile claims nothing is ``unsupported``, for every cell, or
    ``not_run`` where it only says that a package is missing. A
    refusal where it claims the platform contradicts it, and an unclear one is a defect of its
    own: ``start/ready`` fails, and what could not be tried stays ``not_run``.
    """
    if not problem.blames_connector:
        return problem
    words = problem.root_cause or str(problem)
    clear = problem.root_cause is not None and is_clear(words)
    if clear and not profile.claims(device):
        if _PACKAGE.search(words):
            on = ", ".join(profile.platforms)
            return NotHere(f"a package is missing here, and it runs on {on} only: {words!r}")
        return Refused(f"refused on {device}: {words!r}")
    if cell != START:
        return NotHere(f"{profile.title} does not start here, see {START}: {words}")
    if clear:
        return _failed(
            f"the profile claims {device}, and the engine refuses it there: {words!r}", problem
        )
    how = "hangs" if problem.root_cause is None else "dies"
    return _failed(
        f"{profile.title} cannot start on {device} and does not say why: it {how} with {words!r}, "
        "but should refuse in words that name the reason",
        problem,
    )


def _failed(message: str, problem: ServerStartError) -> Exception:
    return CheckFailed(message, problem.excerpt)
