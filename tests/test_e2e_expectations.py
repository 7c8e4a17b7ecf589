"""Runs with a file of known failures: what it lets through, what it does not, and who says so."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator

import pytest

from conformance.report_parts import EntryState
from conformance.scripted.suite import Ended, Running, Suite, asking
from conformance.verdict import Verdict

pytestmark = pytest.mark.timeout(500)

# Decode breaks at three checks; everything else is healthy.
FAULT = (
    "decode:recompute@length/2B,decode:wrong_kv@length/3B,decode:no_done@streaming/answer/chat,"
    "decode:miscount@length/B+1"
)
CHECKS = ("length/B", "length/2B", "length/3B", "length/B+1", "streaming/answer/chat")
CHOSEN = ("--connector", "nixl", *asking(CHECKS))
ENTRY = """\
  - connector: nixl
    check: {check}
    verdict: {verdict}
    reason: {reason}
    expires: {expires}
"""


def entry(
    check: str,
    verdict: str = "fail",
    reason: str = "Broken on purpose.",
    expires: str = "2999-01-01",
) -> str:
    return ENTRY.format(check=check, verdict=verdict, reason=reason, expires=expires)


KNOWN = [
    entry("length/2B", "degraded", "It recomputes."),
    entry("length/3B", reason="It damages KV."),
    entry("streaming/answer/chat"),
    entry("length/B+1"),
]
FLAKY = entry("length/B") + "    flaky: true\n"
FILES = {
    "known": [*KNOWN, FLAKY],
    "wrong": [
        KNOWN[0],
        entry("length/3B", "degraded"),  # line 7: it fails, and not so
        entry("length/B"),  # line 12: it passes
        entry("lenght/*"),  # line 17: there is no such check
        entry("length/B+1", expires="2020-01-01"),  # line 22
        entry("length/1"),  # line 27: not asked for
    ],
    "unfilled": [entry("length/2B", reason="TODO")],
}


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Suite]:
    made = Suite(tmp_path_factory.mktemp("expectations"))
    for name, entries in FILES.items():
        (made.root / f"{name}.yaml").write_text("expectations:\n" + "".join(entries))
    yield made
    assert made.left_behind() == []


@pytest.fixture(scope="module")
def runs(suite: Suite) -> dict[str, Running]:
    files = {name: ("--expectations", str(suite.root / f"{name}.yaml")) for name in FILES}
    return {
        "known": suite.start(*CHOSEN, *files["known"], "-n", "1", fault=FAULT, name="known"),
        "wrong": suite.start(*CHOSEN, *files["wrong"], fault=FAULT, name="wrong"),
        "unfilled": suite.start(*CHOSEN, *files["unfilled"], name="unfilled"),
    }


@pytest.fixture(scope="module")
def known(runs: dict[str, Running]) -> Ended:
    return runs["known"].wait()


@pytest.fixture(scope="module")
def wrong(runs: dict[str, Running]) -> Ended:
    return runs["wrong"].wait()


def states(ended: Ended) -> list[EntryState]:
    found = ended.report.expectations
    assert found is not None
    return [one.state for one in found.entries]


def test_a_run_that_fails_as_expected_is_conformant(known: Ended) -> None:
    assert known.code == 0, known.out + known.err
    assert known.verdicts() == {
        "nixl/length/B": "pass",
        "nixl/length/2B": "xfail",
        "nixl/length/3B": "xfail",
        "nixl/length/B+1": "xfail",
        "nixl/streaming/answer/chat": "xfail",
    }
    assert set(states(known)) == {EntryState.MET}


def test_a_cell_says_what_was_seen_and_what_was_known(known: Ended) -> None:
    cell = known.cell("nixl", "length/2B")
    assert "external=0" in cell.message
    assert cell.expectation is not None
    assert cell.expectation.seen is Verdict.DEGRADED
    assert cell.expectation.at == f"{known.folder.parent}/known.yaml:2"
    assert cell.log_excerpt


def test_the_summary_tells_known_from_flaky(known: Ended) -> None:
    assert "known: nixl length/2B: degraded as expected in 1 cell: It recomputes." in known.out
    assert "flaky: nixl length/B: fail in 0 of 1: Broken on purpose." in known.out
    assert "replay:" not in known.out
    assert "expected: fail: It damages KV." in known.out


def test_junit_has_known_failures_as_xfail(known: Ended) -> None:
    tree = ElementTree.parse(known.folder / "junit.xml")
    skipped = [(one.get("type"), one.get("message")) for one in tree.iter("skipped")]
    assert ("pytest.xfail", "degraded: It recomputes.") in skipped
    assert len(skipped) == 4
    assert not list(tree.iter("failure"))


def test_the_matrix_lists_them_apart(known: Ended) -> None:
    text = (known.folder / "matrix.md").read_text()
    assert "## What is not right" not in text
    assert "(expected: degraded: It recomputes.)" in text.split("## Known failures")[1]
    assert "| in 0 of 1 runs |" in text.split("## Known to come and go")[1]
    assert "5 entries: 5 met" in text.split("## Expectations")[1]
    assert "Known failures" in (known.folder / "matrix.html").read_text()


def test_what_is_not_as_expected_is_red_and_named_by_its_line(wrong: Ended) -> None:
    assert wrong.code == 1
    assert wrong.verdicts() == {
        "nixl/length/B": "xpass",
        "nixl/length/2B": "xfail",
        "nixl/length/3B": "fail",
        "nixl/length/B+1": "fail",
        "nixl/streaming/answer/chat": "fail",
    }
    assert states(wrong) == [
        EntryState.MET,
        EntryState.OTHER,
        EntryState.STALE,
        EntryState.UNMATCHED,
        EntryState.EXPIRED,
        EntryState.UNTRIED,
    ]
    file = f"{wrong.folder.parent}/wrong.yaml"
    problems = [one for one in wrong.report.problems if one.startswith(file)]
    assert [one.split(": ")[0] for one in problems] == [f"{file}:{n}" for n in (12, 17, 22)]
    assert all(one in wrong.out for one in problems)


def test_an_unexpected_pass_says_what_to_do(wrong: Ended) -> None:
    cell = wrong.cell("nixl", "length/B")
    assert cell.message.startswith(f"passes, where {wrong.folder.parent}/wrong.yaml:12 expects")
    assert cell.evidence.proofs
    tree = ElementTree.parse(wrong.folder / "junit.xml")
    assert any("xpass: passes" in (one.get("message") or "") for one in tree.iter("failure"))


def test_a_reason_that_nobody_gave_starts_nothing(runs: dict[str, Running]) -> None:
    ended = runs["unfilled"].wait()
    assert ended.code == 2
    assert "unfilled.yaml:2: reason: 'TODO' is no reason yet" in ended.err
    assert not (ended.folder / "report.json").exists()


def test_update_makes_a_run_right_again(suite: Suite, wrong: Ended) -> None:
    file = suite.root / "kept.yaml"
    file.write_text((suite.root / "wrong.yaml").read_text())
    told = suite.command("expectations", "update", str(file), str(wrong.folder)).wait()
    assert told.code == 0, told.err
    removed = [line for line in told.out.splitlines() if line.startswith("-    check:")]
    assert removed == ["-    check: length/3B", "-    check: length/B", "-    check: lenght/*"]
    assert "+    check: streaming/answer/chat" in told.out
    assert "line 22: expired" in told.err
    assert file.read_text() == (suite.root / "wrong.yaml").read_text()
    suite.command("expectations", "update", str(file), str(wrong.folder), "--write").wait()
    text = file.read_text()
    assert text.count("reason: TODO") == 2
    # What a person has to do: give the reasons, renew what expired, and drop what never ran.
    file.write_text(text.replace("TODO", "Broken on purpose.").replace("2020-", "2999-"))
    given = ("--expectations", str(file))
    again = suite.run(*CHOSEN, *given, fault=FAULT, name="again")
    assert again.code == 0, again.out


def test_a_replay_says_what_is_seen_whatever_is_expected(suite: Suite, known: Ended) -> None:
    ended = suite.command("replay", str(known.folder), "nixl/length/2B", fault=FAULT).wait()
    assert ended.code == 1
    assert "degraded" in ended.out
