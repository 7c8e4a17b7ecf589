"""An expectations file: what is wrong in it is told with line, value and fix."""

from __future__ import annotations

import hashlib
from datetime import date
from pathlib import Path

import pytest

from conformance.errors import UsageError
from conformance.expectations import Entry
from conformance.expectations_file import load_expectations, read_expectations
from conformance.verdict import Verdict

GOOD = """\
# Known to fail.
expectations:
  # the first
  - connector: nixl
    check: 'length/*'
    verdict: fail
    reason: >-
      It breaks at every
      length.
    link: https://github.com/vllm-project/vllm/issues/1
    when: {platforms: [cpu], packages: {vllm: "<0.33"}}
    expires: 2027-06-30

  - connector: example
    check: transfer/chat
    verdict: degraded
    reason: TODO
    expires: 2027-01-31
    flaky: true
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "known.yaml"
    path.write_text(GOOD)
    return path


def refusal(path: Path) -> str:
    with pytest.raises(UsageError) as caught:
        read_expectations(path)
    return str(caught.value)


def changed(file: Path, old: str, new: str) -> str:
    assert old in GOOD
    file.write_text(GOOD.replace(old, new, 1))
    return refusal(file)


def test_a_file_as_it_was_written(file: Path) -> None:
    found = read_expectations(file)
    assert (found.name, len(found.entries)) == (str(file), 2)
    assert found.digest == hashlib.sha256(GOOD.encode()).hexdigest()[:12]
    first, second = found.entries
    assert (first.line, second.line) == (4, 14)
    assert first.reason == "It breaks at every length."
    assert first.when is not None
    assert first.when.words() == "on cpu, with vllm<0.33"
    assert (second.verdict, second.expires) == (Verdict.DEGRADED, date(2027, 1, 31))
    assert second.flaky


@pytest.mark.parametrize("text", ["expectations: []\n", "expectations:\n"])
def test_a_file_may_expect_nothing(file: Path, text: str) -> None:
    file.write_text(text)
    assert load_expectations(file).entries == ()


def test_a_run_refuses_a_reason_that_nobody_gave(file: Path) -> None:
    with pytest.raises(UsageError) as caught:
        load_expectations(file)
    assert str(caught.value) == (
        f"expectations {file}:14: reason: 'TODO' is no reason yet; say why example transfer/chat "
        "fails, or remove the entry"
    )
    file.write_text(GOOD.replace("TODO", "It recomputes."))
    assert len(load_expectations(file).entries) == 2


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            "verdict: fail",
            "verdict: broken",
            "line 6: expectations.0.verdict: Input should be 'fail' or 'degraded' "
            "(given: 'broken'); use one of these words",
        ),
        (
            "    verdict: degraded\n",
            "",
            "line 14: expectations.1.verdict: Field required; add how it fails: 'verdict: fail' or "
            "'verdict: degraded'",
        ),
        (
            "2027-06-30",
            "soon",
            "line 12: expectations.0.expires: Input should be a valid date or datetime, input is "
            "too short (given: 'soon'); write a day such as 2027-06-30",
        ),
        (
            "    flaky: true",
            "    flakey: true",
            "line 19: expectations.1.flakey: Extra inputs are not permitted (given: True); remove "
            "it or fix the spelling",
        ),
        (
            'vllm: "<0.33"',
            "vllm: 0.33",
            "line 11: expectations.0.when.packages.vllm: Input should be a valid string "
            "(given: 0.33); put it in quotes",
        ),
        (
            'vllm: "<0.33"',
            'vllm: "0.33"',
            "line 11: expectations.0.when.packages: vllm: '0.33' is no PEP 440 specifier; write "
            "one such as '<0.33', '==0.32.*' or '>=1.5,<2' (given: {'vllm': '0.33'})",
        ),
        (
            "[cpu]",
            "[gpu]",
            "line 11: expectations.0.when.platforms.0: Input should be 'cpu', 'cuda' or 'rocm' "
            "(given: 'gpu'); use one of these words",
        ),
        (
            "connector: nixl",
            "connector: [{a: [1, x]}]",
            "line 4: expectations.0.connector: Input should be a valid string "
            "(given: [{'a': [1, 'x']}]); put it in quotes",
        ),
        (
            "https://github.com/vllm-project/vllm/issues/1",
            "vllm#1",
            "line 10: expectations.0.link: String should match pattern '^https?://\\S+$' "
            "(given: 'vllm#1'); give an address that begins with https://",
        ),
        (
            "reason: TODO",
            "reason: ''",
            "line 17: expectations.1.reason: empty; say in a sentence why it fails (given: '')",
        ),
    ],
)
def test_an_error_has_line_path_value_and_fix(file: Path, old: str, new: str, said: str) -> None:
    assert changed(file, old, new) == f"expectations {file} is malformed:\n  {said}"


@pytest.mark.parametrize(
    ("line", "fix"),
    [
        ("  - connector: nixl\n    check:", "add the connector's name or a pattern, such as"),
        ("    check: 'length/*'\n", "add a check's id or a pattern, such as \"check: 'length/*'\""),
        ("    reason: TODO\n", "add in a sentence why it fails"),
        ("    expires: 2027-01-31\n", "add the last day on which it counts, such as 'expires: "),
    ],
)
def test_what_is_missing_is_shown(file: Path, line: str, fix: str) -> None:
    without = "  - check:" if "connector" in line else ""
    message = changed(file, line, without)
    assert "Field required" in message
    assert fix in message
    assert "given" not in message


def test_every_error_is_told_at_once(file: Path) -> None:
    file.write_text(GOOD.replace("verdict: fail", "verdict: x").replace("reason: TODO", "why: x"))
    lines = [one.split(":")[0].strip() for one in refusal(file).splitlines()[1:]]
    assert lines == ["line 6", "line 14", "line 17"]


def test_whatever_is_missing_has_a_fix(file: Path) -> None:
    file.write_text("expectations:\n  - {}\n")
    said = refusal(file)
    required = {name for name, field in Entry.model_fields.items() if field.is_required()}
    assert said.count("Field required; add ") == len(required)
    assert {line.split(":")[1].split(".")[-1] for line in said.splitlines()[1:]} == required


def test_a_line_is_not_for_an_author_to_say(file: Path) -> None:
    message = changed(file, "    flaky: true", "    line: 7")
    assert message == f"expectations {file}:19: line: the suite fills this in; remove it"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("- connector: nixl\n", "the document must be a mapping 'expectations: […]'"),
        ("", "the document must be a mapping 'expectations: […]'"),
        ("expectations: nixl\n", "line 1: expectations: Input should be a valid tuple"),
        ("expectations: [nixl]\n", "line 1: expectations.0: Input should be a valid dictionary"),
        ("expectations: {a: 1}\n", "line 1: expectations: Input should be a valid tuple"),
        ("expectations: []\nknown: []\n", "line 2: known: Extra inputs are not permitted"),
        ("{}\n", "line 1: expectations: Field required; add 'expectations: []'"),
        ("expectations: [\n", "is not readable YAML: while parsing"),
        ("a: 1\na: 2\n", 'found duplicate key "a"'),
    ],
)
def test_another_shape_is_refused(file: Path, text: str, said: str) -> None:
    file.write_text(text)
    message = refusal(file)
    assert message.startswith(f"expectations {file}")
    assert said in message
    assert "To suppress" not in message


def test_what_cannot_be_read_is_named(tmp_path: Path) -> None:
    missing = tmp_path / "absent.yaml"
    said = f"expectations {missing}: no such file; docs/expectations.md has an example"
    assert refusal(missing) == said
    assert "is not readable YAML: [Errno" in refusal(tmp_path)
    latin = tmp_path / "latin.yaml"
    latin.write_bytes(b"expectations: [\xff]\n")
    assert f"expectations {latin} is not readable YAML: " in refusal(latin)
