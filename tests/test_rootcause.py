"""The root cause of a server's death: the first exception that does not wrap another.

The excerpts are shaped like vLLM 0.32 logs: each process prefixes every line of a traceback.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.serving.rootcause import (
    EXCERPT_LINES,
    RootCause,
    find_root_cause,
    survived,
    tail,
    without_install_paths,
)

ENGINE = "(EngineCore pid=71) ERROR 11-30 04:24:11 [core.py:1510] "
WORKER = "(Worker_TP0 pid=93) ERROR 11-30 04:24:10 [multiproc_executor.py:953] "
API = "(APIServer pid=18) "
HEAD = """\
(APIServer pid=18) INFO 11-30 04:23:58 [api_server.py:1200] vLLM API server version 0.32.0
(APIServer pid=18) WARNING 11-30 04:23:58 [system_utils.py:255] Found ulimit of 20000. This \
can cause fd limit errors like `OSError: [Errno 24] Too many open files`.
(EngineCore pid=71) INFO 11-30 04:24:02 [core.py:133] Initializing a V1 LLM engine (v0.32.0)
"""
INIT_FAILED = (
    "RuntimeError: Engine core initialization failed. See root cause above. "
    "Failed core proc(s): {'EngineCore': 1}"
)


def traceback(prefix: str, exception: str, title: str = "EngineCore failed to start.") -> str:
    lines = [
        title,
        "Traceback (most recent call last):",
        '  File "/opt/vllm/v1/engine/core.py", line 1501, in run_engine_core',
        "    engine_core = EngineCoreProc(*args, engine_index=dp_rank, **kwargs)",
        "                  ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^",
        '    raise RuntimeError("something else")',
        exception,
    ]
    return "".join(f"{prefix}{line}\n" for line in lines)


WRAPPED = HEAD + traceback(ENGINE, "RuntimeError: NIXL is not available")
WRAPPED += traceback("(EngineCore pid=71) ", "RuntimeError: NIXL is not available")
WRAPPED += traceback(API, INIT_FAILED, "")


def cause_of(folder: Path, text: str) -> RootCause:
    log = folder / "server.log"
    log.write_text(text)
    return find_root_cause(log)


def test_the_engine_cores_exception_is_told_from_the_api_servers(tmp_path: Path) -> None:
    cause = cause_of(tmp_path, WRAPPED)
    assert cause.line == "RuntimeError: NIXL is not available"
    assert not cause.environment


def test_the_excerpt_is_the_traceback_without_prefixes(tmp_path: Path) -> None:
    lines = cause_of(tmp_path, WRAPPED).excerpt.splitlines()
    assert "RuntimeError: NIXL is not available" in lines
    assert "Traceback (most recent call last):" in lines
    assert "    engine_core = EngineCoreProc(*args, engine_index=dp_rank, **kwargs)" in lines
    assert not any("pid=71" in line for line in lines)


def test_a_workers_exception_is_told_from_both_wrappers(tmp_path: Path) -> None:
    log = HEAD + traceback(WORKER, "ValueError: unknown kv_role 'boss'", "WorkerProc failed.")
    wrapper = "Exception: WorkerProc initialization failed due to an exception in a background"
    log += traceback(ENGINE, wrapper) + traceback(API, INIT_FAILED, "")
    assert cause_of(tmp_path, log).line == "ValueError: unknown kv_role 'boss'"


def test_a_wrapper_that_was_logged_first_is_passed_over(tmp_path: Path) -> None:
    log = HEAD + traceback(API, INIT_FAILED, "") + traceback(ENGINE, "ValueError: no such port")
    assert cause_of(tmp_path, log).line == "ValueError: no such port"


def test_a_wrapper_is_better_than_nothing(tmp_path: Path) -> None:
    assert cause_of(tmp_path, HEAD + traceback(API, INIT_FAILED, "")).line == INIT_FAILED
    dead = (
        "vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue. "
        "See stack trace (above) for the root cause."
    )
    log = HEAD + traceback("(APIServer pid=18) ERROR 11-30 05:32:18 [async_llm.py:906] ", dead)
    assert cause_of(tmp_path, log).line == dead


@pytest.mark.parametrize(
    "line",
    [
        "AssertionError",
        "KeyError: 'remote_block_ids'",
        "ModuleNotFoundError: No module named 'lmcache'",
        "pydantic_core._pydantic_core.ValidationError: 1 validation error for VllmConfig",
        "vllm.exceptions.VLLMValidationError: unsupported",
        "asyncio.exceptions.TimeoutError",
    ],
)
def test_exceptions_of_any_module_are_seen(tmp_path: Path, line: str) -> None:
    cause = cause_of(tmp_path, HEAD + traceback(ENGINE, line) + traceback(API, INIT_FAILED))
    assert (cause.line, cause.environment) == (line, False)


@pytest.mark.parametrize(
    "line",
    [
        "OSError: [Errno 98] Address already in use",
        "zmq.error.ZMQError: Address already in use (addr='tcp://127.0.0.1:20123')",
        "OSError: [Errno 28] No space left on device: '/dev/shm/psm_1'",
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.",
        "OSError: [Errno 24] Too many open files",
    ],
)
def test_the_machines_fault_is_told_from_the_connectors(tmp_path: Path, line: str) -> None:
    cause = cause_of(tmp_path, HEAD + traceback(ENGINE, line) + traceback(API, INIT_FAILED, ""))
    assert (cause.line, cause.environment) == (line, True)


@pytest.mark.parametrize(
    "line",
    [
        "Fatal Python error: Segmentation fault",
        "[node:71   :0:99] Caught signal 11 (Segmentation fault: address not mapped to object)",
        "terminate called after throwing an instance of 'std::bad_alloc'",
    ],
)
def test_a_native_crash_is_a_cause(tmp_path: Path, line: str) -> None:
    cause = cause_of(tmp_path, f"{HEAD}{line}\n\nCurrent thread 0x7f:\n{API}{INIT_FAILED}\n")
    assert (cause.line, cause.environment) == (line, False)


def test_the_kernels_kill_is_the_machines_fault(tmp_path: Path) -> None:
    assert cause_of(tmp_path, f"{HEAD}Killed\n").environment


@pytest.mark.parametrize("text", ["", "\n \n"])
def test_an_empty_log_says_so(tmp_path: Path, text: str) -> None:
    assert cause_of(tmp_path, text) == RootCause("the log is empty", "")
    assert find_root_cause(tmp_path / "never-written.log").line == "the log is empty"


def test_a_log_without_an_exception_gives_its_last_words(tmp_path: Path) -> None:
    log = HEAD + "".join(f"(EngineCore pid=71) step {number}\n" for number in range(60)) + "\n"
    cause = cause_of(tmp_path, log)
    assert (cause.line, cause.environment) == ("step 59", False)
    assert len(cause.excerpt.splitlines()) == EXCERPT_LINES


def test_the_tail_is_cut_and_survives_bad_bytes(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_bytes(b"\xff" + b"x" * 100 + b"\nlast")
    assert tail(log, 4) == "last"
    assert tail(log).endswith("x\nlast")


def test_paths_of_installed_files_are_cut_to_what_every_machine_has() -> None:
    line = '  File "/opt/env/lib/python3.11/site-packages/vllm/v1/core.py", line 7, in step'
    assert without_install_paths(line) == '  File "vllm/v1/core.py", line 7, in step'
    stdlib = 'File "/usr/lib/python3.11/contextlib.py", line 1'
    assert without_install_paths(stdlib) == 'File "contextlib.py", line 1'


@pytest.mark.parametrize(
    "link",
    [
        "The above exception was the direct cause of the following exception:",
        "During handling of the above exception, another exception occurred:",
    ],
)
def test_of_a_chain_the_last_exception_is_the_one_meant_for_people(
    tmp_path: Path, link: str
) -> None:
    chain = HEAD + traceback(ENGINE, "ConnectionRefusedError: [Errno 111] Connection refused")
    chain += f"{ENGINE}\n{ENGINE}{link}\n{ENGINE}\n"
    chain += traceback(ENGINE, "RuntimeError: Failed to connect to metadata server", "")
    chain += traceback(API, INIT_FAILED, "")
    assert cause_of(tmp_path, chain).line == "RuntimeError: Failed to connect to metadata server"


def test_exceptions_that_are_not_chained_do_not_replace_the_first(tmp_path: Path) -> None:
    two = HEAD + traceback(ENGINE, "RuntimeError: the first")
    two += traceback(ENGINE, "RuntimeError: the second")
    assert cause_of(tmp_path, two).line == "RuntimeError: the first"


ANSWERED = """RequestValidationError caught. Request id: None
Traceback (most recent call last):
  File "/x/fastapi/routing.py", line 723, in app
    raise validation_error
fastapi.exceptions.RequestValidationError: 1 validation error:
  {'type': 'missing', 'loc': ('body', 'messages'), 'msg': 'Field required'}
"""


def test_an_exception_that_was_answered_did_not_end_the_server(tmp_path: Path) -> None:
    log = tmp_path / "log"
    died = "(EngineCore pid=7) ERROR 11-30 21:26:19 [core.py:1510] IndexError: out of range"
    log.write_text(f"{ANSWERED}{died}\n")
    assert find_root_cause(log).line == "IndexError: out of range"


INVALID = """\
pydantic_core._pydantic_core.ValidationError: 1 validation error for VllmConfig
  Value error, Connector Old uses deprecated 2-argument constructor signature. [type=value_error, \
input_value=ArgsKwargs((), {}), input_type=ArgsKwargs]
    For further information visit https://errors.pydantic.dev/2.14/v/value_error
"""


def test_a_refused_configuration_is_told_with_its_reason(tmp_path: Path) -> None:
    cause = cause_of(tmp_path, f"Traceback (most recent call last):\n{INVALID}")
    assert cause.line.endswith(
        "1 validation error for VllmConfig: Connector Old uses deprecated 2-argument constructor "
        "signature."
    )


def test_a_field_may_be_named_before_the_reason(tmp_path: Path) -> None:
    said = "x.ValidationError: 1 validation error for M\nenable\n  Value error, no. [type=v, a=b]"
    assert cause_of(tmp_path, said).line == "x.ValidationError: 1 validation error for M: no."


def test_an_invalid_configuration_without_a_reason_stays_as_it_is(tmp_path: Path) -> None:
    said = "x.ValidationError: 1 validation error for M"
    assert cause_of(tmp_path, f"{said}\nsomething else\n").line == said


LAMENT = """\
\x1b[31;20m[2026-11-30 21:30:12,093] LMCache ERROR:\x1b[0m Failed to initialize: Traceback
Traceback (most recent call last):
  File "/opt/lib/python3.11/site-packages/lmcache/v1/manager.py", line 92, in _init_components
    raise RuntimeError(f"No supported {device} connector found.")
RuntimeError: No supported cpu connector found.
. System will operate in degraded mode (recompute). \x1b[3m(manager.py:107:lmcache)\x1b[0m
"""


def test_an_exception_that_a_server_survived_is_found() -> None:
    assert survived(HEAD + LAMENT) == "RuntimeError: No supported cpu connector found."


def test_a_start_without_an_exception_has_none() -> None:
    # A warning may name an exception's class.
    assert survived(HEAD) == ""
