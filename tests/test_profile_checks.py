"""What must hold between the fields of a profile: each message has place and fix."""

from __future__ import annotations

from typing import Any

import pytest
from sample_profiles import both, daemon, profile, side

from conformance.errors import UsageError
from conformance.profile_checks import check_profile

STORE = both(extra_config={"path": "${dir:store}"})
WRONG: dict[str, tuple[dict[str, Any], str, str]] = {
    "handoff": (
        {"handoff": "params_from_prefil"},
        "handoff: 'params_from_prefil' is unknown",
        "did you mean 'params_from_prefill'?",
    ),
    "handoff of a pair": ({"handoff": "none+pigeon"}, "handoff: 'pigeon' is unknown", "use one of"),
    "feature": (
        {"features": {"teleport": {"support": "yes"}}},
        "features.teleport: no such feature",
        "basic-transfer",
    ),
    "movement in no folder": (
        {
            **STORE,
            "movement": [{"side": "decode", "metric": "m"}, {"side": "decode", "files": "x"}],
        },
        "movement.1.files: 'x' names a folder that P and D do not share",
        "use ${dir:x} in prefill.extra_config and decode.extra_config",
    ),
    "movement in P's folder alone": (
        {
            "prefill": side("prefill", extra_config={"path": "${dir:store}"}),
            "movement": [{"side": "prefill", "files": "store"}],
        },
        "movement.0.files: 'store' names a folder that P and D do not share",
        "in a daemon or file",
    ),
    "damage in no folder": (
        {"causality": {"method": "damage_files", "dir": "gone"}},
        "causality.dir: 'gone' names a folder",
        "use ${dir:gone}",
    ),
    "file used and not there": (
        both(env={"CONFIG": "${file:a.json}"}),
        "files: ${file:a.json} is used, but 'a.json' is not among them",
        "add it",
    ),
    "file used by a daemon alone": (
        {"daemons": [daemon(env={"CONFIG": "${file:b.json}"})]},
        "files: ${file:b.json} is used",
        "add it",
    ),
    "file that names a file": (
        {"files": {"a.json": "${dir:d}", "b.json": {"include": ["${file:a.json}"]}}},
        "files.b.json: a file cannot name another file",
        "use ${dir:…} and a fixed name",
    ),
    "port of no daemon": (
        {"daemons": [daemon(), daemon(ready_port="other")]},
        "daemons.1.ready_port: no lease of that name",
        "use ${port:other} in the daemon's command or env",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_does_not_fit_is_named_with_file_place_and_fix(name: str) -> None:
    changes, place, fix = WRONG[name]
    with pytest.raises(UsageError) as caught:
        check_profile(profile(**changes))
    assert str(caught.value).startswith(f"profile /profiles/mine.yaml: {place}")
    assert fix in str(caught.value)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {**STORE, "movement": [{"side": "prefill", "files": "store"}]},
        {**STORE, "causality": {"method": "damage_files", "dir": "store"}},
        {
            "daemons": [daemon(env={"STORE": "${dir:store}"})],
            "movement": [{"side": "prefill", "files": "store"}],
        },
        {
            "files": {"a.json": {"path": "${dir:store}"}},
            **both(env={"CONFIG": "${file:a.json}"}),
            "causality": {"method": "damage_files", "dir": "store"},
        },
        {"daemons": [daemon(command=["m"], env={"PORT": "${port:master}"})]},
        {"handoff": "params_from_prefill+mooncake_bootstrap"},
        {"features": {"streaming": {"support": "no", "limit": "none", "source": "a page"}}},
    ],
    ids=lambda changes: " ".join(changes) or "plain",
)
def test_what_fits_is_accepted(changes: dict[str, Any]) -> None:
    check_profile(profile(**changes))
