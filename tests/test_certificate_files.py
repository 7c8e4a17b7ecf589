"""Certificates as files: under a name that says the outcome, valid, and readable."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
from sample_certificates import judged, run_of, spoilt
from sample_profiles import profile

from conformance.certificate import Certificate
from conformance.certificate_files import page, write
from conformance.errors import ReportError
from conformance.schemas import ROOT
from conformance.verdict import Verdict

GRANTED = judged(run_of(profile()))
REFUSED = judged(spoilt("length/B", verdict=Verdict.FAIL, message="wrong | <b>answer</b>"))


@pytest.mark.parametrize("certificate", [GRANTED, REFUSED], ids=["granted", "refused"])
def test_the_file_obeys_the_committed_schema(tmp_path: Path, certificate: Certificate) -> None:
    schema = json.loads((ROOT / "reports" / "certificate.schema.json").read_text())
    document = json.loads(write(certificate, tmp_path)[0].read_text())
    jsonschema.validate(document, schema)
    assert document["certified"] is certificate.certified


def test_a_refusal_takes_an_earlier_certificate_away_and_the_other_way_round(
    tmp_path: Path,
) -> None:
    (tmp_path / "report.json").touch()
    for certificate, stem in ((GRANTED, "certificate"), (REFUSED, "no-certificate")) * 2:
        made = write(certificate, tmp_path)
        assert [file.name for file in made] == [f"{stem}.json", f"{stem}.md"]
        assert set(tmp_path.iterdir()) == {*made, tmp_path / "report.json"}


def test_a_full_disk_is_an_error_with_a_fix(tmp_path: Path) -> None:
    with pytest.raises(ReportError, match=r"cannot write .*certificate.json.*--out"):
        write(GRANTED, tmp_path / "absent")


def test_the_page_of_a_certificate() -> None:
    text = page(GRANTED)
    assert text.startswith("# Certificate: MyConnector\n")
    assert GRANTED.requirement_set.digest in text
    assert "kv-conformance certify --profile mine.yaml --seed 0" in text
    assert "| length/B | pass | ✓ | ✓ | ✓ | ✓ | ✓ |" in text
    assert "Faker: found out: fail: made up" in text
    assert "some \\| cpu" in text
    assert "legs/at-once" in text


def test_the_page_of_a_refusal_has_every_reason_and_no_markup_of_messages() -> None:
    text = page(REFUSED)
    assert text.startswith("# No certificate: MyConnector\n")
    assert "- length/B: fail: wrong \\| &lt;b>answer&lt;/b>" in text
    assert "| length/B | fail |" in text


def test_every_cell_is_one_row_of_the_table() -> None:
    rows = [line for line in page(GRANTED).splitlines() if "| pass |" in line]
    assert len(rows) == len(GRANTED.cells)
    assert {row.count("|") for row in rows} == {8}
