"""What must hold between a profile's fields, and between a profile and the suite."""

from __future__ import annotations

from collections.abc import Iterator

from conformance.errors import UsageError
from conformance.features import BY_ID
from conformance.handoffs import check_handoff
from conformance.placeholders import names_in
from conformance.profile import Profile


def check_profile(profile: Profile) -> None:
    """Raises :class:`UsageError` with file, path in the document and the fix."""
    for where, what in _problems(profile):
        raise UsageError(f"profile {profile.path}: {where}: {what}")


def _problems(profile: Profile) -> Iterator[tuple[str, str]]:
    yield from check_handoff(profile.handoff, profile.python_folders())
    for feature in profile.features:
        if feature not in BY_ID:
            known = ", ".join(BY_ID)
            yield f"features.{feature}", f"no such feature; use one of: {known}"
    for number, feature in enumerate(profile.tries):
        if feature not in BY_ID:
            yield f"tries.{number}", f"no feature {feature!r}; use one of: {', '.join(BY_ID)}"
    yield from _folders(profile)
    yield from _files(profile)
    yield from _daemons(profile)


def _folders(profile: Profile) -> Iterator[tuple[str, str]]:
    named = {f"movement.{number}.files": m.files for number, m in enumerate(profile.movement)}
    for where, name in {**named, "causality.dir": profile.causality.dir}.items():
        if name and ("dir", name) not in _shared(profile):
            yield (
                where,
                f"{name!r} names a folder that P and D do not share; use ${{dir:{name}}} in "
                "prefill.extra_config and decode.extra_config, or in a daemon or file",
            )


def _shared(profile: Profile) -> set[tuple[str, str]]:
    on_both = profile.placeholders("prefill") & profile.placeholders("decode")
    return on_both | profile.placeholders()


def _files(profile: Profile) -> Iterator[tuple[str, str]]:
    used = profile.placeholders("prefill") | profile.placeholders("decode") | profile.placeholders()
    for kind, name in sorted(used):
        if kind == "file" and name not in profile.files:
            yield "files", f"${{file:{name}}} is used, but {name!r} is not among them; add it"
    for name, content in profile.files.items():
        if any(kind == "file" for kind, _ in names_in(content)):
            yield f"files.{name}", "a file cannot name another file; use ${dir:…} and a fixed name"


def _daemons(profile: Profile) -> Iterator[tuple[str, str]]:
    for number, daemon in enumerate(profile.daemons):
        if ("port", daemon.ready_port) not in names_in([daemon.command, daemon.env]):
            yield (
                f"daemons.{number}.ready_port",
                f"no lease of that name: use ${{port:{daemon.ready_port}}} in the daemon's "
                "command or env",
            )
