"""What ``kv-conformance contract`` tries: a profile's connector or a class named by its author."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from conformance.errors import UsageError
from conformance.profile import Profile, Role
from conformance.profile_file import builtin_profiles, load_profile
from conformance.serving.engine import inspect

# Clauses that need decode to find what prefill saved.
NEED_A_FIND = (
    "asking_changes_nothing",
    "failed_load_is_reported",
    "kv_of_a_prompt_in_two_steps_is_loaded_bit_for_bit",
    "load_touches_only_its_blocks",
    "match_count_leaves_the_last_token",
    "metadata_builder_leaves_scheduler_output_alone",
    "metadata_builder_resets_its_state",
    "metadata_can_be_pickled",
    "promised_release_is_reported_exactly_once",
    "resumed_request_has_its_kv_bit_for_bit",
    "saved_kv_is_loaded_bit_for_bit",
)
# Handoffs in which decode's params are those that prefill returned, or nothing.
SAME_REQUEST_ID = "push_params_from_prefill"
KNOWN_HANDOFFS = {"none", "params_from_prefill", SAME_REQUEST_ID}

SIDES: tuple[Role, ...] = ("prefill", "decode")


@dataclass(frozen=True)
class Subject:
    """What the child is told, and where it finds the author's modules."""

    title: str
    python: str
    described: dict[str, Any]
    path: tuple[str, ...] = field(default=())

    @property
    def env(self) -> dict[str, str]:
        """The child's environment variables."""
        return {
            "KV_CONTRACT": json.dumps(self.described),
            "PYTHONPATH": os.pathsep.join(self.path),
        }


def of_connector(name: str, python: str | None) -> Subject:
    """The connector of a profile that the suite ships."""
    profiles = builtin_profiles()
    if name not in profiles:
        raise UsageError(
            f"--connector {name}: no such profile; use one of: {', '.join(profiles)}; or name "
            "your own with --profile FILE or --class pkg.mod:Class"
        )
    return of_profile(profiles[name], python)


def of_profile_file(path: Path, python: str | None) -> Subject:
    """The connector of an author's profile."""
    return of_profile(load_profile(path), python)


def of_class(name: str, extra_config: str, python: str | None) -> Subject:
    """A connector class, or a subclass of ``ConnectorContract``, as ``package.module:Class``."""
    module, colon, attribute = name.partition(":")
    if not (module and colon and attribute):
        raise UsageError(f"--class {name}: write it as package.module:Class")
    try:
        extra = json.loads(extra_config)
    except ValueError as problem:
        raise UsageError(f"--extra-config {extra_config}: not JSON: {problem}") from problem
    if not isinstance(extra, dict):
        raise UsageError(f"--extra-config {extra_config}: give a JSON object")
    attributes = {"extra_config": extra} if extra else {}
    return Subject(name, python or sys.executable, {"class": name, "attributes": attributes})


def of_profile(profile: Profile, python: str | None) -> Subject:
    """What a profile says, as attributes of a contract class. Raises :class:`UsageError`."""
    _startable(profile)
    python = python or profile.server_python or sys.executable
    device = inspect(python).device
    attributes: dict[str, Any] = {}
    for side in SIDES:
        attributes |= _side(profile, side, device)
    if profile.causality.method == "damage_files":
        attributes["store"] = profile.causality.dir
    attributes["same_request_id"] = profile.handoff == SAME_REQUEST_ID
    if profile.handoff not in KNOWN_HANDOFFS:
        why = f"the contract tier does not make the profile's handoff, {profile.handoff}"
        attributes["untried"] = dict.fromkeys(NEED_A_FIND, why)
    folders = tuple(map(str, profile.python_folders()))
    return Subject(f"{profile.title} ({profile.name})", python, {"attributes": attributes}, folders)


def _side(profile: Profile, side: Role, device: str) -> dict[str, Any]:
    config = profile.kv_transfer_config(side, device)
    named = {
        "connector": config.pop("kv_connector"),
        "module_path": config.pop("kv_connector_module_path", None),
    }
    return named | {
        f"{side}_extra_config": config.pop("kv_connector_extra_config", {}),
        f"{side}_kv_config": config,
        f"{side}_env": dict(profile.instance(side).env),
    }


def _startable(profile: Profile) -> None:
    """The contract tier starts no daemons and writes no files."""
    kinds = {kind for side in SIDES for kind, _ in profile.placeholders(side)} - {"dir", "port"}
    if profile.daemons or kinds:
        needs = [*(f"daemon {daemon.name}" for daemon in profile.daemons)]
        needs += [f"placeholder ${{{kind}:…}}" for kind in sorted(kinds)]
        raise UsageError(
            f"profile {profile.path}: needs {', '.join(needs)}, which the contract tier does not "
            "provide; subclass ConnectorContract, start them in a fixture, and give its name "
            "with --class (docs/contracts.md)"
        )
