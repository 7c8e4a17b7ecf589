"""Edits to an expectations file: what is not edited stays as it was, byte for byte."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from expectation_samples import LATER, entry
from hypothesis import given, settings
from hypothesis import strategies as st

from conformance.errors import UsageError
from conformance.expectations import Entry
from conformance.expectations_edit import edited
from conformance.expectations_file import read_expectations

TEXT = """\
# Known to fail.

expectations:
  # about the first
  # in two lines
  - connector: a   # of ours
    check: "x"
    reason: |
      It says:
      # not a comment
    verdict: fail
    expires: 2027-06-30
    # still about the first

  # about the second
  - {connector: b, check: y, verdict: fail, reason: r, expires: 2027-06-30}

  # about none

  -
    connector: c
    check: z
    verdict: degraded
    reason: 'quoted'
    expires: 2027-06-30

# the end
"""
FIRST, SECOND, THIRD = 6, 16, 21
NEW = """\
  - connector: nixl
    check: length/1
    verdict: fail
    reason: It is broken.
    expires: 2026-12-31
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "known.yaml"
    path.write_text(TEXT)
    return path


def after(
    file: Path,
    replaced: dict[int, tuple[Entry, ...]],
    added: Sequence[Entry] = (),
    text: str = TEXT,
) -> str:
    file.write_text(text)
    before, found = edited(file, replaced, added)
    assert before == text == file.read_text()
    return found


def without(*parts: str) -> str:
    text = TEXT
    for part in parts:
        assert text.count(part) == 1
        text = text.replace(part, "")
    return text


ONE = TEXT[TEXT.index("  # about the first") : TEXT.index("\n  # about the second")]
TWO = TEXT[TEXT.index("  # about the second") : TEXT.index("\n  # about none")]
THREE = TEXT[TEXT.index("  -\n") : TEXT.index("\n# the end")]


def test_lines_are_those_of_the_loader(file: Path) -> None:
    assert [one.line for one in read_expectations(file).entries] == [FIRST, SECOND, THIRD]


def test_nothing_to_do_leaves_everything(file: Path) -> None:
    assert after(file, {}) == TEXT
    assert after(file, {}, text=TEXT.rstrip("\n")) == TEXT.rstrip("\n")


def test_an_entry_goes_with_the_comment_right_above_it(file: Path) -> None:
    assert after(file, {FIRST: ()}) == without(ONE + "\n")
    assert after(file, {SECOND: ()}) == without(TWO)
    assert after(file, {THIRD: ()}) == without(THREE)


def test_several_entries_go(file: Path) -> None:
    assert after(file, {FIRST: (), THIRD: ()}) == without(ONE + "\n", THREE)


def test_what_is_left_can_be_read(file: Path) -> None:
    for gone in ({FIRST: ()}, {SECOND: ()}, {THIRD: ()}, {FIRST: (), SECOND: ()}):
        file.write_text(after(file, gone))  # type: ignore[arg-type]
        assert len(read_expectations(file).entries) == 3 - len(gone)


def test_a_list_that_is_left_empty_says_so(file: Path) -> None:
    text = after(file, {FIRST: (), SECOND: (), THIRD: ()})
    assert "\nexpectations: []\n" in text
    assert "# about none" in text
    assert text.startswith("# Known to fail.\n")
    assert text.endswith("\n# the end\n")
    file.write_text(text)
    assert read_expectations(file).entries == ()


def test_entries_that_stood_apart_come_no_further_apart(file: Path) -> None:
    text = TEXT.replace(ONE, ONE + "\n\n")
    assert after(file, {FIRST: ()}, text=text) == without(ONE + "\n")


def test_a_dash_may_stand_further_above(file: Path) -> None:
    text = TEXT.replace("  -\n", "  -\n    # about the third\n")
    assert after(file, {THIRD + 1: ()}, text=text) == without(THREE)
    # A line more behind it changes nothing.
    assert after(file, {THIRD: ()}, text=TEXT + "# at last\n") == without(THREE) + "# at last\n"


def test_a_comment_beside_the_key_stays(file: Path) -> None:
    text = "expectations:  # expectations: all of them\n"
    text += TWO[TWO.index("  - {") :]
    found = after(file, {2: ()}, text=text)
    assert found == "expectations: []  # expectations: all of them\n"


def test_an_entry_is_added_at_the_end(file: Path) -> None:
    assert after(file, {}, [entry()]) == TEXT.replace(THREE, THREE + NEW)


def test_an_entry_gives_way_to_others_and_its_comment_stays(file: Path) -> None:
    text = after(file, {SECOND: (entry(), entry(check="length/B"))})
    both = NEW + NEW.replace("length/1", "length/B")
    start = TWO.index("  - {")
    assert text == TEXT.replace(TWO[start:], both)


def test_added_entries_take_the_place_of_those_that_went(file: Path) -> None:
    text = after(file, {FIRST: (), SECOND: (), THIRD: ()}, [entry()])
    assert "expectations:\n" in text
    assert NEW in text
    file.write_text(text)
    assert len(read_expectations(file).entries) == 1


def test_what_an_entry_says_is_written_in_order_and_on_few_lines(file: Path) -> None:
    full = entry(
        check="*",
        reason=" ".join(["It fails for a reason that takes some words."] * 3),
        link="https://x.org/7",
        when={"platforms": ["cpu"], "packages": {"vllm": "==0.32.0"}},
        flaky=True,
    )
    added = after(file, {}, [full]).replace(TEXT[: TEXT.index("\n# the end")], "")
    assert added.startswith(
        "  - connector: nixl\n    check: '*'\n    verdict: fail\n    flaky: true\n"
        "    reason: It fails for a reason that takes some words. It fails for a reason that takes "
        "some\n      words. It fails for a reason that takes some words.\n"
    )
    assert added.endswith(
        "    link: https://x.org/7\n"
        '    when: {platforms: [cpu], packages: {vllm: "==0.32.0"}}\n'
        "    expires: 2026-12-31\n\n# the end\n"
    )
    assert max(map(len, added.splitlines())) <= 100
    bare = after(file, {}, [entry(when={"packages": {"vllm": "<1"}})])
    assert '    when: {packages: {vllm: "<1"}}\n' in bare


def test_a_list_without_indentation_gets_entries_without(file: Path) -> None:
    text = "expectations:\n- connector: a\n  check: x\n  verdict: fail\n  reason: r\n"
    text += "  expires: 2027-06-30\n# the end"
    found = after(file, {}, [entry()], text)
    assert found == text.replace(
        "# the end", NEW.replace("    ", "  ").replace("  - ", "- ") + "# the end\n"
    )
    assert after(file, {2: ()}, text=text) == "expectations: []\n# the end\n"


@pytest.mark.parametrize("text", ["expectations: []\n", "expectations:\n", "# a\nexpectations: []"])
def test_a_file_that_expected_nothing(file: Path, text: str) -> None:
    head = "# a\n" if text.startswith("#") else ""
    assert after(file, {}, [entry()], text) == f"{head}expectations:\n{NEW}"
    assert after(file, {}, text=text) == text


def test_a_file_that_does_not_exist_begins_with_what_it_is(tmp_path: Path) -> None:
    before, found = edited(tmp_path / "new.yaml", {}, [entry()])
    assert before == ""
    assert found == (
        f"# What is known to fail; docs/expectations.md says how to read it.\nexpectations:\n{NEW}"
    )
    assert edited(tmp_path / "new.yaml", {}, []) == ("", "")


def test_a_list_in_one_line_has_to_be_spread_out_first(file: Path) -> None:
    file.write_text("# a\nexpectations: [{connector: a, check: x}]\n")
    with pytest.raises(UsageError, match=r"known\.yaml:2: give each entry lines of its own first"):
        edited(file, {2: ()}, [])


texts = st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), min_size=1)
sentences = st.lists(
    st.one_of(texts, st.sampled_from(["word", "# x", "a: b", " ", "\n", "'", '"'])), min_size=1
).map(" ".join)


@settings(deadline=None, database=None, max_examples=40)
@given(texts, texts, sentences, st.booleans())
def test_whatever_an_entry_says_is_read_back(
    connector: str, check: str, reason: str, flaky: bool
) -> None:
    given = entry(connector, check, reason=f"because {reason}", flaky=flaky, line=2)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "known.yaml"
        file.write_text(edited(file, {}, [given])[1].split("\n", 1)[1])
        assert read_expectations(file).entries == (given,)


def test_a_day_is_written_as_one(file: Path) -> None:
    assert f"expires: {LATER}\n" in after(file, {}, [entry()])
