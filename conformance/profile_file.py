"""Reads profiles from YAML: every error names the file, the path in the document and the fix."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from conformance.composition import compose
from conformance.errors import UsageError
from conformance.profile import Profile

PROFILE_FOLDER = Path(__file__).parent / "profiles"
_FILLED_IN = ("path", "digest", "parts")


def load_profile(path: Path) -> Profile:
    """Read and check one profile, its children included. Raises :class:`UsageError`."""
    profile = _read(path)
    children = [_child(profile, name) for name in profile.children]
    profile = compose(profile, children) if children else profile
    from conformance.profile_checks import check_profile

    check_profile(profile)
    return profile


def builtin_profiles() -> dict[str, Profile]:
    """The profiles shipped with the suite, by name."""
    return {profile.name: profile for profile in _shipped()}


@cache
def _shipped() -> tuple[Profile, ...]:
    """Read once: options, plan and doctor all ask for them."""
    return tuple(load_profile(path) for path in sorted(PROFILE_FOLDER.glob("*.yaml")))


def _child(parent: Profile, name: str) -> Profile:
    """A child is a shipped profile, or a YAML file beside the parent's."""
    for folder in (parent.path.parent, PROFILE_FOLDER):
        if (folder / f"{name}.yaml").is_file():
            return load_profile(folder / f"{name}.yaml")
    known = ", ".join(sorted(path.stem for path in PROFILE_FOLDER.glob("*.yaml")))
    raise UsageError(
        f"profile {parent.path}: children: {name!r} is neither a file {name}.yaml beside it nor "
        f"one of: {known}"
    )


def _read(path: Path) -> Profile:
    document, raw = _document(path)
    digest = hashlib.sha256(raw).hexdigest()[:12]
    try:
        return Profile.model_validate({**document, "path": path, "digest": digest})
    except ValidationError as problem:
        raise UsageError(f"profile {path} is malformed:\n{_explain(problem)}") from problem


def _document(path: Path) -> tuple[dict[str, Any], bytes]:
    try:
        raw = path.read_bytes()
        document = yaml.safe_load(raw)
    except FileNotFoundError as problem:
        raise UsageError(
            f"profile {path} does not exist; give the path of a YAML file, such as a copy of "
            f"{PROFILE_FOLDER / 'nixl.yaml'}"
        ) from problem
    except (OSError, yaml.YAMLError) as problem:
        raise UsageError(f"profile {path} is not readable YAML: {problem}") from problem
    if not isinstance(document, dict):
        raise UsageError(f"profile {path}: the document must be a mapping with 'name', 'title', …")
    for internal in _FILLED_IN:
        if internal in document:
            raise UsageError(f"profile {path}: {internal}: the suite fills this in; remove it")
    return document, raw


def _explain(problem: ValidationError) -> str:
    lines = []
    for error in problem.errors():
        where = ".".join(str(part) for part in error["loc"]) or "(document)"
        hint = "; remove it or fix the spelling" if error["type"] == "extra_forbidden" else ""
        given = "" if error["type"] == "missing" else f" (given: {error['input']!r})"
        lines.append(f"  {where}: {error['msg']}{given}{hint}")
    return "\n".join(lines)
