"""The ledger of crashes: a request that brought a server down twice is not sent again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from conformance.crashes import CrashLedger, fingerprint
from conformance.errors import CheckFailed

BODY: dict[str, Any] = {"prompt": [1, 2, 3], "max_tokens": 8}


def mark(body: dict[str, Any] = BODY, **place: str) -> str:
    where = {"deployment": "nixl × tiny", "role": "decode", "path": "completions"} | place
    return fingerprint(body=body, **where)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "crashes.json"


def test_a_request_is_sent_twice_but_not_a_third_time(file: Path) -> None:
    ledger = CrashLedger(file)
    for cause in ("RuntimeError: first", "RuntimeError: second"):
        ledger.refuse_third("a")
        ledger.record("a", cause)
    with pytest.raises(CheckFailed) as caught:
        ledger.refuse_third("a")
    assert "brought the server down 2 times" in str(caught.value)
    assert "RuntimeError: second" in str(caught.value)


def test_other_requests_are_still_sent(file: Path) -> None:
    ledger = CrashLedger(file)
    for _ in range(2):
        ledger.record("a", "boom")
    ledger.record("b", "boom")
    ledger.refuse_third("b")
    ledger.refuse_third("c")


def test_all_workers_of_a_run_share_the_ledger(file: Path) -> None:
    CrashLedger(file).record("a", "boom")
    CrashLedger(file).record("a", "bang")
    with pytest.raises(CheckFailed, match="bang"):
        CrashLedger(file).refuse_third("a")


@pytest.mark.parametrize(
    "changed",
    [
        {"kv_transfer_params": {"remote_engine_id": "e-1"}},
        {"cache_salt": "x"},
        {"request_id": "r-7"},
    ],
)
def test_what_changes_with_every_sending_does_not_matter(changed: dict[str, Any]) -> None:
    assert mark(BODY | changed) == mark()


def test_the_order_of_fields_does_not_matter() -> None:
    assert mark(dict(reversed(BODY.items()))) == mark()


@pytest.mark.parametrize(
    "other",
    [
        mark(BODY | {"prompt": [1, 2, 4]}),
        mark(BODY | {"max_tokens": 9}),
        mark(BODY | {"stream": True}),
        mark(role="prefill"),
        mark(path="chat/completions"),
        mark(deployment="example × tiny"),
    ],
)
def test_what_is_asked_of_which_server_matters(other: str) -> None:
    assert other != mark()
