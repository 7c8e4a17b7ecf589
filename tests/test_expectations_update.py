"""What reports say should change in an expectations file."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from expectation_samples import CPU, LATER, PLACES, TODAY, entry, file_of
from test_matrix_samples import cell, column, one, report
from typer.testing import CliRunner

from conformance.cli import app
from conformance.expectations import Entry, Facts, Place, When
from conformance.expectations_file import read_expectations
from conformance.expectations_update import Proposal, Sight, propose, sights, unmatched
from conformance.report import Engine, save
from conformance.report_parts import EntryResult, EntryState, ExpectationsResult, Expected
from conformance.verdict import Verdict

PASS, FAIL, DEGRADED = Verdict.PASS, Verdict.FAIL, Verdict.DEGRADED
LENGTH_1, LENGTH_B = PLACES[:2]
SEEN_WITH = When(platforms=("cpu",), packages={"vllm": "==0.32.0"})
LAST = LATER + timedelta(days=60)


def saw(place: Place, *verdicts: Verdict, facts: Facts = CPU) -> list[Sight]:
    return [Sight(place, verdict, facts) for verdict in verdicts]


def proposal(seen: Iterable[Sight], *entries: Entry, gone: Iterable[int] = ()) -> Proposal:
    return propose(file_of(*entries).entries, gone, list(seen), TODAY, LAST)


def added(place: Place, **more: Any) -> Entry:
    given = {"reason": "TODO", "when": SEEN_WITH, "expires": LAST, "line": 0, **more}
    return entry(place.connector, place.cell, **given)


def test_what_is_as_expected_needs_nothing() -> None:
    seen = [*saw(LENGTH_1, FAIL, FAIL), *saw(LENGTH_B, PASS)]
    assert proposal(seen, entry()) == Proposal()


@pytest.mark.parametrize("verdict", [PASS, Verdict.UNSUPPORTED])
def test_an_entry_that_no_longer_holds_goes(verdict: Verdict) -> None:
    assert proposal(saw(LENGTH_1, verdict), entry(check="length/B"), entry()) == Proposal(
        replaced={20: ()}
    )


def test_an_entry_of_which_nothing_was_seen_stays() -> None:
    assert proposal(saw(LENGTH_B, PASS), entry(), entry("example")) == Proposal()


def test_a_failure_of_another_kind_is_another_entry() -> None:
    assert proposal(saw(LENGTH_1, DEGRADED), entry()) == Proposal(
        replaced={10: ()}, added=[added(LENGTH_1, verdict="degraded")]
    )


def test_an_entry_is_narrowed_to_what_still_fails() -> None:
    wide = entry("n*", "length/*", reason="r", link="https://x.org/7")
    seen = [*saw(LENGTH_1, FAIL), *saw(LENGTH_B, PASS), *saw(PLACES[2], FAIL)]
    narrow = [
        wide.model_copy(update={"connector": "nixl", "check": f"length/{n}", "line": 10})
        for n in ("1", "B+1")
    ]
    assert proposal(seen, wide) == Proposal(replaced={10: tuple(narrow)})


def test_what_nobody_wrote_down_is_added_without_a_reason() -> None:
    seen = [*saw(LENGTH_1, FAIL), *saw(LENGTH_B, DEGRADED), *saw(PLACES[2], PASS)]
    assert proposal(seen) == Proposal(added=[added(LENGTH_1), added(LENGTH_B, verdict="degraded")])
    assert all(one.unfilled for one in proposal(seen).added)


def test_what_comes_and_goes_is_added_as_flaky() -> None:
    assert proposal(saw(LENGTH_1, PASS, FAIL, PASS)).added == [added(LENGTH_1, flaky=True)]
    both = proposal(saw(LENGTH_1, DEGRADED, FAIL))
    assert both.added == [added(LENGTH_1)]
    assert both.notes == ["nixl/length/1 was also degraded: say which it is"]


def test_each_build_is_told_apart() -> None:
    newer = Facts.of("cuda", "vllm", "0.33.0+cu129", {})
    unknown = Facts("device not known")
    odd = Facts.of("cpu", "vllm", "dev", {})
    lost = Facts.of("device not known", "vllm", "0.33.0", {})
    seen = [*saw(LENGTH_1, FAIL), *saw(LENGTH_1, FAIL, facts=newer)]
    seen += saw(LENGTH_1, PASS, FAIL, facts=unknown)
    seen += [*saw(LENGTH_1, FAIL, facts=odd), *saw(LENGTH_1, FAIL, facts=lost)]
    conditions = [(one.when, one.flaky) for one in proposal(seen).added]
    assert conditions == [
        (SEEN_WITH, False),
        (When(platforms=("cuda",), packages={"vllm": "==0.33.0"}), False),
        (None, True),
        (When(platforms=("cpu",)), False),
        (When(packages={"vllm": "==0.33.0"}), False),
    ]


def test_a_condition_keeps_an_entry_from_what_it_is_not_about() -> None:
    elsewhere = entry(when={"platforms": ["cuda"]})
    assert proposal(saw(LENGTH_1, PASS), elsewhere) == Proposal()
    assert proposal(saw(LENGTH_1, FAIL), elsewhere).added == [added(LENGTH_1)]


def test_an_entry_that_is_met_at_times_is_for_a_person() -> None:
    assert proposal(saw(LENGTH_1, FAIL, PASS, FAIL), entry()) == Proposal(
        notes=[
            "line 10: nixl/length/1 was fail in 2 of 3 runs: find out why, narrow 'when', or "
            "make it 'flaky: true'"
        ]
    )


def test_an_entry_that_is_met_in_two_ways_is_for_a_person() -> None:
    found = proposal(saw(LENGTH_1, FAIL, DEGRADED), entry())
    assert (found.replaced, found.added) == ({}, [])
    assert found.notes[-1] == "line 10: nixl/length/1 was also degraded: say which it is"
    flaky = proposal(saw(LENGTH_1, DEGRADED), entry(flaky=True))
    assert flaky == Proposal(notes=["line 10: nixl/length/1 was also degraded: say which it is"])


def test_a_flaky_entry_stays_however_often_it_passed() -> None:
    seen = saw(LENGTH_1, PASS, PASS, Verdict.UNSUPPORTED)
    assert proposal(seen, entry(flaky=True)) == Proposal()


def test_an_expired_entry_is_for_a_person() -> None:
    old = entry(expires=TODAY - timedelta(days=1))
    said = ["line 10: expired on 2026-11-30: renew or remove it"]
    for verdict in (FAIL, PASS):
        assert proposal(saw(LENGTH_1, verdict), old) == Proposal(notes=said)
    assert proposal(saw(LENGTH_1, FAIL), entry(expires=TODAY)) == Proposal()


def test_an_entry_that_matches_nothing_goes() -> None:
    found = proposal(saw(LENGTH_1, FAIL), entry(check="lenght"), entry(), gone=[10])
    assert found == Proposal(replaced={10: ()})
    # Also one that would be about something, if the report had it.
    assert proposal(saw(LENGTH_1, FAIL), entry(), gone=[10]) == Proposal(
        replaced={10: ()}, added=[added(LENGTH_1)]
    )


def test_a_pattern_of_what_is_added_is_exact() -> None:
    odd = Place("nixl", "odd", "odd/[a]*?")
    [found] = proposal(saw(odd, FAIL)).added
    assert found.covers(odd)
    assert not found.covers(Place("nixl", "odd", "odd/a-b"))
    assert found.check == "odd/[[]a][*][?]"
    wide = entry(check="odd/*")
    seen = [*saw(odd, FAIL), *saw(Place("nixl", "odd", "odd/x"), PASS)]
    [narrow] = proposal(seen, wide).replaced[10]
    assert narrow.check == "odd/[[]a][*][?]"


def test_cells_are_seen_as_they_were_judged_and_only_if_they_were() -> None:
    expected = Expected(at="k:1", verdict=FAIL, seen=FAIL, reason="r", expires=LATER)
    cells = [
        cell("length/1", Verdict.XFAIL, expectation=expected),
        cell("length/B", PASS),
        cell("length/C", Verdict.ERROR),
        cell("length/D", Verdict.NOT_RUN),
        cell("transfer/chat", Verdict.UNSUPPORTED),
    ]
    found = sights([one(*cells, version="0.33.0")], ["length", "transfer/chat", "transfer"])
    assert [(seen.place, seen.verdict) for seen in found] == [
        (Place("nixl", "length", "length/1"), FAIL),
        (Place("nixl", "length", "length/B"), PASS),
        (Place("nixl", "transfer/chat", "transfer/chat"), Verdict.UNSUPPORTED),
    ]
    assert {seen.facts.vllm for seen in found} == {"0.33.0"}
    assert {seen.facts.device for seen in found} == {"cpu"}
    assert {seen.facts.versions["nixl"] for seen in found} == {"1.5.1"}


def test_a_cell_of_a_check_that_is_no_more_is_its_own_check() -> None:
    [found] = sights([one(cell("gone/1", FAIL))], ["length", "gon"])
    assert found.place == Place("nixl", "gone/1", "gone/1")
    [longest] = sights([one(cell("a/b/1", FAIL))], ["a", "a/b", "a/b/1/c"])
    assert longest.place.check == "a/b"


def test_a_report_without_an_engine_says_little() -> None:
    [found] = sights([one(cell("length/1", FAIL), engine=None)], [])
    assert found.facts == Facts("not known")


def test_runs_with_this_very_file_say_what_matched_nothing() -> None:
    def result(digest: str, **states: EntryState) -> ExpectationsResult:
        entries = [
            EntryResult(
                line=int(line[1:]),
                connector="c",
                check="x",
                verdict=FAIL,
                reason="r",
                expires=LATER,
                state=state,
            )
            for line, state in states.items()
        ]
        return ExpectationsResult(file="k", digest=digest, day=TODAY, entries=entries)

    mine = result("abc", l3=EntryState.UNMATCHED, l9=EntryState.STALE)
    other = result("xyz", l5=EntryState.UNMATCHED)
    reports = [one(expectations=mine), one(expectations=other), one()]
    assert unmatched(reports, file_of()) == {3}


# The command


def command(*arguments: str) -> tuple[str, str]:
    ended = CliRunner().invoke(app, ["expectations", "update", *arguments])
    assert ended.exit_code == 0, ended.output
    return ended.stdout, ended.stderr


@pytest.fixture
def run(tmp_path: Path) -> Path:
    cells = [cell("length/1", FAIL), cell("length/B", PASS), cell("own/check", FAIL)]
    engine = Engine(distribution="vllm", version="0.32.0", device="cuda", python="3.11")
    save(
        report(column(*cells), column(cell("start/ready", FAIL), name="mine"), engine=engine),
        tmp_path / "run",
    )
    return tmp_path / "run"


KNOWN = """\
expectations:
  - {connector: nixl, check: length/B, verdict: fail, reason: r, expires: 2999-01-01}
  # was there ever such a thing?
  - {connector: nixl, check: absent, verdict: fail, reason: r, expires: 2999-01-01}
  - {connector: nixl, check: own/*, verdict: fail, reason: r, expires: 2999-01-01}
  - {connector: mine, check: start/*, verdict: fail, reason: TODO, expires: 2020-01-01}
"""


def test_the_command_proposes_a_diff_and_writes_it_when_told(tmp_path: Path, run: Path) -> None:
    file = tmp_path / "known.yaml"
    file.write_text(KNOWN)
    out, err = command(str(file), str(run), "--expires", "2027-06-30")
    assert out.splitlines() == [
        f"--- {file}",
        f"+++ {file}",
        "@@ -1,6 +1,9 @@",
        " expectations:",
        "-  - {connector: nixl, check: length/B, verdict: fail, reason: r, expires: 2999-01-01}",
        "-  # was there ever such a thing?",
        "-  - {connector: nixl, check: absent, verdict: fail, reason: r, expires: 2999-01-01}",
        "   - {connector: nixl, check: own/*, verdict: fail, reason: r, expires: 2999-01-01}",
        "   - {connector: mine, check: start/*, verdict: fail, reason: TODO, expires: 2020-01-01}",
        "+  - connector: nixl",
        "+    check: length/1",
        "+    verdict: fail",
        "+    reason: TODO",
        '+    when: {platforms: [cuda], packages: {vllm: "==0.32.0"}}',
        "+    expires: 2027-06-30",
    ]
    assert err == f"{file}: line 6: expired on 2020-01-01: renew or remove it\n"
    assert file.read_text() == KNOWN
    again, _ = command(str(file), str(run), "--expires", "2027-06-30", "--write")
    assert again == out
    assert "length/B" not in file.read_text()
    assert command(str(file), str(run), "--write") == ("", err.replace("line 6", "line 3"))


def test_the_command_begins_a_file(tmp_path: Path, run: Path) -> None:
    file = tmp_path / "not" / "there" / "known.yaml"
    out, err = command(str(file), str(run / "report.json"), "--write")
    assert out.startswith(f"--- {file}\n+++ {file}\n@@ -0,0 +1,")
    assert file.read_text().count("reason: TODO") == 3
    assert err == ""
    last = TODAY.today() + timedelta(days=90)
    assert file.read_text().count(f"expires: {last}\n") == 3


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path, run: Path) -> None:
    (tmp_path / "folder").write_text("in the way")
    file = tmp_path / "folder" / "known.yaml"
    ended = CliRunner().invoke(app, ["expectations", "update", str(file), str(run), "--write"])
    assert ended.exit_code != 0
    # Root is told that it is no folder, and others that it exists.
    assert str(ended.exception) in (
        f"cannot write {file}: Not a directory",
        f"cannot write {file}: File exists",
    )


def test_a_run_with_this_very_file_tells_what_matched_nothing(tmp_path: Path) -> None:
    file = tmp_path / "known.yaml"
    file.write_text(KNOWN)
    done = one(cell("length/1", PASS))
    entries = [entry(line=2).model_dump(exclude={"when"}) | {"state": EntryState.UNMATCHED}]
    for digest, lines in ((read_expectations(file).digest, 4), ("another", 3)):
        said = {"file": "k", "digest": digest, "day": TODAY, "entries": entries}
        done.expectations = ExpectationsResult.model_validate(said)
        save(done, tmp_path / "run")
        out, _ = command(str(file), str(tmp_path / "run"))
        assert sum(line.startswith("-  - ") for line in out.splitlines()) == lines


def test_the_group_says_what_it_is_for() -> None:
    ended = CliRunner().invoke(app, ["expectations"])
    assert "update" in ended.output
    assert "Files of known failures" in ended.output
