"""The suite's command line in a process of its own, as a person would start it in a shell.

The process is forked, so that what is imported already need not be imported again: that takes
longer than most of the runs here. A fault of the suite's own clock is in effect here.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import sys
import tempfile
from multiprocessing.process import BaseProcess
from pathlib import Path

import httpx
import openai.resources.chat
import openai.resources.completions

from conformance import cli
from conformance.profile_file import builtin_profiles
from conformance.registry import all_checks
from conformance.scripted import clock, faults
from conformance.transport import tls
from matrix import html


def _prepare() -> None:
    """Whatever every forked process would otherwise do for itself."""
    all_checks()
    builtin_profiles()
    httpx.Client(verify=tls()).close()
    openai.DefaultHttpxClient(verify=tls()).close()
    html._environment().get_template("matrix.html.j2")


_prepare()
_FORK = multiprocessing.get_context("fork")


def start(root: Path, arguments: tuple[str, ...], fault: str, out: Path, err: Path) -> BaseProcess:
    """Run a command line below ``root``, its words going to the two files."""
    process = _FORK.Process(target=_be_the_suite, args=(root, arguments, fault, out, err))
    process.start()
    return process


def environment(root: Path, fault: str) -> dict[str, str]:
    """What says to a run that all it makes lies below ``root``, and to its servers their faults."""
    return {
        "TMPDIR": str(root / "tmp"),
        "KV_CONFORMANCE_CACHE": str(root / "cache"),
        "COLUMNS": "200",
        faults.VARIABLE: fault,
        faults.STATE_VARIABLE: str(root),
    }


def _be_the_suite(root: Path, arguments: tuple[str, ...], fault: str, out: Path, err: Path) -> None:
    gc.freeze()  # nobody here is to look through what its parent holds
    # A shell starts what runs in its background deaf to Ctrl-C, and so would be who started this.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.setsid()
    os.chdir(root)
    os.environ |= environment(root, fault)
    for name in [name for name in os.environ if name.startswith("PYTEST")]:
        del os.environ[name]
    tempfile.tempdir = None
    for number, file in ((1, out), (2, err)):
        os.dup2(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
    sys.stdout, sys.stderr = os.fdopen(1, "w", buffering=1), os.fdopen(2, "w", buffering=1)
    if "clock_jumps" in fault:
        clock.let_jump()
    sys.argv = ["kv-conformance", *arguments]
    cli.main()
