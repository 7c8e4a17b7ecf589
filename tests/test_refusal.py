"""A failed start: refused in clear words, died of something unclear, hung, or not its fault."""

from __future__ import annotations

import pytest
from sample_profiles import profile

from conformance.errors import CheckFailed, NotHere, Refused, ServerStartError
from conformance.profile import Profile
from conformance.refusal import START, is_clear, reason_for

# What vLLM 0.32.0 and Python say when a connector cannot be used on a machine.
CLEAR = [
    "NotImplementedError: CPU Offloading is currently only supported on CUDA-alike and XPU GPUs",
    "ImportError: nixl is not available",
    "RuntimeError: NIXL is not available",
    "RuntimeError: Cannot access accelerator device when none is available.",
    "ModuleNotFoundError: No module named 'mooncake'",
    "ImportError: Please install mooncake by following the instructions at https://example.org",
    "ValueError: MooncakeStoreConnector does not support: hybrid models",
    "ValueError: The environment variable 'MOONCAKE_CONFIG_PATH' is not set.",
    "pydantic_core._pydantic_core.ValidationError: kv_role must be one of kv_both",
    "AssertionError: Encoder-decoder models are not currently supported with KV connectors",
]
UNCLEAR = [
    "AttributeError: '_StreamPlaceholder' has no attribute 'priority_range'",
    "AttributeError: module 'torch' has no attribute 'only_supported_here'",
    "TypeError: __init__() missing 1 required positional argument: 'kv_cache_config'",
    "KeyError: 'not supported'",
    "builtins.AssertionError: must be on a GPU",
    "IndexError: list index out of range",
    "Fatal Python error: Segmentation fault",
    "RuntimeError: boom",
    "RuntimeError: Mooncake batch memory registration failed.",
    "the log is empty",
]
WORDS, ACCIDENT = CLEAR[0], UNCLEAR[0]
CLAIMS = profile(title="MyConnector", platforms=["cpu"])
SILENT = profile(title="MyConnector", platforms=["cuda"])


@pytest.mark.parametrize("words", CLEAR)
def test_words_that_name_the_reason_are_clear(words: str) -> None:
    assert is_clear(words)


@pytest.mark.parametrize("words", UNCLEAR)
def test_accidents_and_empty_words_are_not(words: str) -> None:
    assert not is_clear(words)


def died(words: str | None, *, blames: bool = True) -> ServerStartError:
    return ServerStartError(f"it said {words}", words, "the log", blames_connector=blames)


@pytest.mark.parametrize("cell", [START, "transfer/completion"])
def test_a_clear_refusal_where_nothing_is_claimed_is_unsupported(cell: str) -> None:
    found = reason_for(died(WORDS), SILENT, "cpu", cell)
    assert isinstance(found, Refused)
    assert str(found) == f"refused on cpu: {WORDS!r}"


def test_a_clear_refusal_of_a_claimed_platform_contradicts_the_profile() -> None:
    found = reason_for(died(WORDS), CLAIMS, "cpu", START)
    assert isinstance(found, CheckFailed)
    assert "the profile claims cpu, and the engine refuses it there" in str(found)
    assert WORDS in str(found)
    assert found.excerpt == "the log"


@pytest.mark.parametrize("asked", [CLAIMS, SILENT], ids=["claimed", "not claimed"])
def test_an_unclear_death_fails_whatever_is_claimed(asked: Profile) -> None:
    found = reason_for(died(ACCIDENT), asked, "cpu", START)
    assert isinstance(found, CheckFailed)
    assert "MyConnector cannot start on cpu and does not say why: it dies with" in str(found)
    assert ACCIDENT in str(found)
    assert "name the reason" in str(found)
    assert found.excerpt == "the log"


def test_a_hang_is_a_failure_even_if_the_last_word_was_clear() -> None:
    hung = ServerStartError(f"not ready within 3 s; its last word: {WORDS}", blames_connector=True)
    for asked in (CLAIMS, SILENT):
        found = reason_for(hung, asked, "cpu", START)
        assert isinstance(found, CheckFailed)
        assert "it hangs with" in str(found)
        assert "not ready within 3 s" in str(found)


@pytest.mark.parametrize(
    ("words", "asked"),
    [(WORDS, CLAIMS), (ACCIDENT, CLAIMS), (ACCIDENT, SILENT), (None, CLAIMS), (None, SILENT)],
)
def test_start_alone_carries_the_blame(words: str | None, asked: Profile) -> None:
    found = reason_for(died(words), asked, "cpu", "length/B")
    assert isinstance(found, NotHere)
    assert "MyConnector does not start here, see start/ready: " in str(found)
    assert str(words) in str(found)


@pytest.mark.parametrize("cell", [START, "length/B"])
@pytest.mark.parametrize("asked", [CLAIMS, SILENT], ids=["claimed", "not claimed"])
def test_the_machines_fault_stays_an_error_of_every_cell(asked: Profile, cell: str) -> None:
    problem = died("OSError: [Errno 98] address already in use", blames=False)
    assert reason_for(problem, asked, "cpu", cell) is problem


@pytest.mark.parametrize(
    "words",
    [
        "ModuleNotFoundError: No module named 'mooncake'",
        "RuntimeError: MoRIIO is not available. Please ensure the 'mori' package is installed and "
        "properly configured.",
    ],
)
def test_a_missing_package_says_nothing_of_the_platform(words: str) -> None:
    found = reason_for(died(words), SILENT, "cpu", START)
    assert isinstance(found, NotHere)
    assert "a package is missing here" in str(found)
