"""What a profile declares unsupported, with a source, is not tried: the declaration is the verdict.

Whether a connector starts is always asked: the engine's own words are worth more than a profile's.
"""

from __future__ import annotations

from conformance.errors import Refused
from conformance.profile import Declared, Profile
from conformance.registry import PlannedCell

ALWAYS_ASKED = "start"


def exceptions_of(profile: Profile) -> dict[str, Declared]:
    """The features that a profile declares unsupported, by id."""
    return {
        name: declared
        for name, declared in profile.features.items()
        if declared.support == "no" and name != ALWAYS_ASKED
    }


def must_be_supported(cell: PlannedCell, *, keep_going: bool) -> None:
    """Raises :class:`Refused` for a cell whose feature or variant is declared unsupported.

    ``keep_going`` tries it all the same: a declaration that is no longer true shows only then.
    """
    declared = exceptions_of(cell.profile).get(cell.check.feature) or _variant_of(cell)
    if declared and not keep_going:
        raise Refused(in_words(declared))


def _variant_of(cell: PlannedCell) -> Declared | None:
    """What is declared unsupported of the cell's kind of model or mode of the engine."""
    for name, declared in cell.profile.variants.items():
        if name == cell.check.variant and declared.support == "no":
            return declared
    return None


def in_words(declared: Declared) -> str:
    """The sentence that a cell carries."""
    why = f": {declared.limit}" if declared.limit else ""
    return f"declared unsupported{why} (source: {declared.source})"
