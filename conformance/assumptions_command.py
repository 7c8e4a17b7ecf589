"""The command ``assumptions``: does this vLLM do what the suite takes for granted of it?"""

from __future__ import annotations

import secrets
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from conformance.assumptions.plain import Plain
from conformance.assumptions.trial import broken, in_brief, try_all
from conformance.attached_options import ApiKey, Header
from conformance.attachment import Attachment
from conformance.client import Client
from conformance.clock import RunClock
from conformance.crashes import CRASHES, CrashLedger
from conformance.deadline import START_LIMIT_S
from conformance.options import RunOptions
from conformance.prompts import Prompts
from conformance.report_parts import AssumptionResult
from conformance.serving.attached import AttachedServer, look_at
from conformance.serving.deployment import PAIR
from conformance.serving.devices import detect_gpus
from conformance.serving.engine import Engines
from conformance.serving.launcher import Launcher
from conformance.serving.served import Served
from conformance.verdict import ExitCode

MARKS = {True: ("✓", "green"), False: ("✗", "red"), None: ("-", None)}


def assumptions(
    server_python: Annotated[
        str | None, typer.Option(help="Interpreter whose environment has vLLM.")
    ] = None,
    url: Annotated[
        str | None,
        typer.Option(help="A server without a connector that runs already; nothing is started."),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(help="Model to serve, or, with --url, the served name. Default: by device."),
    ] = None,
    intrusive: Annotated[
        bool,
        typer.Option(help="With --url: also those that pause the server or empty its caches."),
    ] = False,
    start_timeout: Annotated[
        float, typer.Option(help="Seconds for the server to become ready.")
    ] = START_LIMIT_S,
    api_key: ApiKey = None,
    header: Header = [],  # noqa: B006
) -> None:
    """Does this vLLM do what the suite takes for granted of it? For whoever installs a new one.

    One server without a connector is started, or the one at --url is asked; nobody else may use
    it meanwhile. Every run tries the same before its first check.

    Exit codes: 0 all that could be tried hold; 1 one does not; 2 bad usage; 3 no server.
    """
    if url is None:
        given = [server_python] if server_python else []
        options = RunOptions.of(server_python=given, model=model, start_timeout_s=start_timeout)
        server = _started(options)
    else:
        server = _running(url, model, api_key, header)
    with server as (plain, version):
        raise typer.Exit(_tried(plain, version, intrusive=url is None or intrusive))


def _tried(plain: Plain, version: str, *, intrusive: bool) -> ExitCode:
    began = time.monotonic()
    results = try_all(plain, intrusive=intrusive, told=_show)
    line, _ = in_brief(results, version)
    typer.echo(f"{line}, {time.monotonic() - began:.1f} s")
    return ExitCode.NOT_CONFORMANT if broken(results) else ExitCode.CONFORMANT


def _show(result: AssumptionResult) -> None:
    mark, colour = MARKS[result.held]
    typer.secho(f"{mark} {result.id}", fg=colour)
    if result.held is None:
        typer.echo(f"    not tried: {result.seen}")
    if result.held is False:
        typer.echo(f"    taken for granted: {result.says}")
        typer.echo(f"    seen: {result.seen}")
        typer.echo(f"    read from: {result.source}; relied on in: {', '.join(result.relied_on)}")


@contextmanager
def _started(options: RunOptions) -> Iterator[tuple[Plain, str]]:
    """A reference of ours; stopped at the end, and its log kept only if it does not start."""
    engines, folder = (
        Engines(options.server_python, {}),
        tempfile.mkdtemp(prefix="kvc-assumptions-"),
    )
    options = options.model_copy(update={"report": Path(folder)})
    engine = engines.default
    launcher = Launcher(options, engines, detect_gpus(engine.device), RunClock(), lambda _: None)
    typer.echo(f"starting a server of vLLM {engine.version} without a connector (about a minute)")
    model = launcher.model(options.model_for("fast", engine.device))
    deployment = launcher.launch_reference(model, PAIR)
    try:
        server = deployment.references[0]
        yield _plain(server, folder, options.seed, started=True), engine.version
    finally:
        deployment.stop()
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _running(
    url: str, model: str | None, api_key: str | None, headers: list[str]
) -> Iterator[tuple[Plain, str]]:
    """The server that somebody else started."""
    attached = Attachment.of(url, url, api_key=api_key, headers=headers)
    assert attached is not None
    carried = attached.request_headers()
    facts = look_at("--url", attached.prefill_url, carried)
    server = AttachedServer(
        "reference", model or facts.models[0], facts.url, facts.block_size, carried
    )
    with tempfile.TemporaryDirectory(prefix="kvc-assumptions-") as folder:
        yield _plain(server, folder, secrets.randbelow(10**9), started=False), facts.version


def _plain(server: Served, folder: str, seed: int, *, started: bool) -> Plain:
    ledger = CrashLedger(Path(folder) / CRASHES)
    client = Client(server, RunClock(), ledger, "reference")
    return Plain(client, Prompts(client, seed), started=started)
