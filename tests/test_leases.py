"""Leases: what instances share, what each has of its own, and that all of it is given back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sample_profiles import both, daemon, profile, side

from conformance.errors import EnvironmentProblem
from conformance.profile import Role
from conformance.serving.leases import Leases, missing_program, program
from conformance.serving.ports import DEFAULT_RANGE, PortRange

SIDES = {
    "prefill": side("prefill", env={"SIDE": "${port:p_side}", "MEETING": "${port:meeting}"}),
    "decode": side("decode", env={"SIDE": "${port:d_side}", "MEETING": "${port:meeting}"}),
}


@pytest.fixture
def made(tmp_path: Path) -> Iterator[list[Leases]]:
    """Where a test's leases are put, to be released after it."""
    found: list[Leases] = []
    yield found
    for leases in found:
        leases.release()


@pytest.fixture
def python(tmp_path: Path) -> str:
    """An interpreter beside which there is one program."""
    folder = tmp_path / "env"
    folder.mkdir()
    (folder / "master").touch()
    return str(folder / "python")


def prepared(made: list[Leases], root: Path, python: str, **changes: Any) -> Leases:
    root.mkdir()
    leases = Leases(profile(**changes), python, root, PortRange.parse(DEFAULT_RANGE))
    made.append(leases)
    leases.prepare()
    return leases


def test_a_port_of_one_side_is_each_instances_own(
    made: list[Leases], tmp_path: Path, python: str
) -> None:
    leases = prepared(made, tmp_path / "run", python, **SIDES)
    sides: list[Role] = ["prefill", "prefill", "decode", "decode"]
    instances = [leases.for_instance(leases.profile.placeholders(role)) for role in sides]
    own = [leased["port", f"{role[0]}_side"] for role, leased in zip(sides, instances, strict=True)]
    assert len(set(own)) == 4
    assert {leased["port", "meeting"] for leased in instances} == {leases.shared["port", "meeting"]}
    assert leases.shared["port", "meeting"] not in own
    assert ("port", "d_side") not in instances[0]


def test_a_port_that_a_daemon_or_a_file_names_is_shared(
    made: list[Leases], tmp_path: Path, python: str
) -> None:
    leases = prepared(
        made,
        tmp_path / "run",
        python,
        daemons=[daemon()],
        files={"a.txt": "${port:told}"},
        prefill=side("prefill", env={"M": "${port:master}", "T": "${port:told}"}),
    )
    assert {("port", "master"), ("port", "told")} <= leases.shared.keys()
    first, second = (leases.for_instance(leases.profile.placeholders("prefill")) for _ in range(2))
    assert first == second == leases.shared


def test_a_folder_is_shared_even_where_one_side_alone_names_it(
    made: list[Leases], tmp_path: Path, python: str
) -> None:
    prefill = side("prefill", extra_config={"path": "${dir:store}"})
    leases = prepared(made, tmp_path / "run", python, prefill=prefill)
    assert leases.folders == {"store": tmp_path / "run" / "store"}
    assert leases.folders["store"].is_dir()
    needed = leases.profile.placeholders("prefill")
    assert leases.for_instance(needed)["dir", "store"] == str(leases.folders["store"])


def test_files_are_written_with_their_leases_filled_in(
    made: list[Leases], tmp_path: Path, python: str
) -> None:
    leases = prepared(
        made,
        tmp_path / "run",
        python,
        files={
            "a.json": {"port": "${port:master}", "at": "h:${port:master}", "dir": ["${dir:d}"]},
            "run.sh": "exec ${bin:master} ${python}\n",
        },
        **both(env={"CONFIG": "${file:a.json}"}),
    )
    path = Path(leases.for_instance({("file", "a.json")})["file", "a.json"])
    port = leases.shared["port", "master"]
    assert json.loads(path.read_text()) == {
        "port": int(port),
        "at": f"h:{port}",
        "dir": [str(leases.folders["d"])],
    }
    script = Path(leases.shared["file", "run.sh"]).read_text()
    assert script == f"exec {Path(python).parent / 'master'} {python}\n"


def test_release_gives_ports_back_and_removes_folders_and_files(
    made: list[Leases], tmp_path: Path, python: str
) -> None:
    files = {"a.json": {"dir": "${dir:d}"}}
    leases = prepared(made, tmp_path / "run", python, files=files, **SIDES)
    own = leases.for_instance(leases.profile.placeholders("prefill"))
    ports = {int(own["port", name]) for name in ("p_side", "meeting")}
    for port in ports:
        with pytest.raises(EnvironmentProblem):
            PortRange(port, port).lease()
    leases.release()
    assert not (tmp_path / "run").exists()
    for port in ports:
        PortRange(port, port).lease().release()
    leases.release()  # twice is harmless


def test_a_program_beside_the_interpreter_goes_before_the_search_path(
    tmp_path: Path, python: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path / "bin"
    elsewhere.mkdir()
    for name in ("master", "other"):
        (elsewhere / name).touch(mode=0o755)
    monkeypatch.setenv("PATH", str(elsewhere))
    assert program("master", python) == str(Path(python).parent / "master")
    assert program("other", python) == str(elsewhere / "other")


def test_a_program_that_is_nowhere_is_named_with_the_fix(tmp_path: Path, python: str) -> None:
    with pytest.raises(EnvironmentProblem) as caught:
        program("no-such-master", python)
    assert f"'no-such-master' is neither beside {python} nor on the search path" in str(
        caught.value
    )
    assert "install the package" in str(caught.value)


def test_a_daemon_whose_program_is_nowhere_is_noticed_before_anything_starts(python: str) -> None:
    assert missing_program(profile(daemons=[daemon()]), python) is None
    absent = daemon(name="other", command=["${bin:no-such-master}", "${port:master}"])
    found = missing_program(profile(daemons=[daemon(), absent]), python)
    assert found is not None
    assert found.startswith("MyConnector: program 'no-such-master' is neither beside")
