"""``kv-conformance run`` and ``plan``: the main job, and what it would do."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from conformance.attached_options import (
    ApiKey,
    DecodeUrl,
    HandoffPort,
    Header,
    PrefillUrl,
    ReferenceUrl,
    RouterUrl,
)
from conformance.attachment import Attachment
from conformance.choice_options import (
    AnswerLimit,
    Checks,
    Connectors,
    Features,
    KeepGoing,
    Levels,
    ModelName,
    Ports,
    Profiles,
    RealModel,
    Seed,
    ServerPython,
    StartTimeout,
)
from conformance.deadline import ANSWER_LIMIT_S, START_LIMIT_S
from conformance.expectations_command import KnownFailures
from conformance.options import RunOptions
from conformance.registry import plan as planned
from conformance.serving.engine import inspect
from conformance.serving.ports import DEFAULT_RANGE


def plan(
    connector: Connectors = [],  # noqa: B006 (typer copies defaults)
    feature: Features = [],  # noqa: B006
    check: Checks = [],  # noqa: B006
    level: Levels = [],  # noqa: B006
    profile: Profiles = [],  # noqa: B006
    model: ModelName = None,
    real_model: RealModel = "auto",
    server_python: ServerPython = [],  # noqa: B006
) -> None:
    """Deployments, checks and expected minutes, before anything starts."""
    options = RunOptions.of(
        connectors=connector,
        features=feature,
        checks=check,
        levels=level,
        profiles=profile,
        model=model,
        real_model=real_model,
        server_python=server_python,
    )
    from conformance import planner

    planner.show(planned(options, inspect(options.server_python).device))


def run(
    connector: Connectors = [],  # noqa: B006
    feature: Features = [],  # noqa: B006
    check: Checks = [],  # noqa: B006
    level: Levels = [],  # noqa: B006
    profile: Profiles = [],  # noqa: B006
    model: ModelName = None,
    real_model: RealModel = "auto",
    keep_going: KeepGoing = False,
    expectations: KnownFailures = None,
    seed: Seed = None,
    report: Annotated[
        Path, typer.Option(help="Folder for report.json, junit.xml, logs and the matrix.")
    ] = Path("reports/runs/latest"),
    server_python: ServerPython = [],  # noqa: B006
    port_range: Ports = DEFAULT_RANGE,
    start_timeout: StartTimeout = START_LIMIT_S,
    answer_limit: AnswerLimit = ANSWER_LIMIT_S,
    workers: Annotated[
        int, typer.Option("--workers", "-n", help="Deployments at once (pytest-xdist).")
    ] = 0,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Only the summary.")] = False,
    prefill_url: PrefillUrl = None,
    decode_url: DecodeUrl = None,
    reference_url: ReferenceUrl = None,
    router_url: RouterUrl = None,
    api_key: ApiKey = None,
    header: Header = [],  # noqa: B006
    handoff_port: HandoffPort = [],  # noqa: B006
) -> None:
    """Launch the pairs, try the checks, write the report and the matrix.

    With --prefill-url and --decode-url nothing is launched: the checks that need no restart are
    tried on the pair that runs there. Keep other traffic off it meanwhile, for its counters are
    the evidence. Without --reference-url decode itself, asked without the handoff, says what the
    right answer is.
    """
    options = RunOptions.of(
        connectors=connector,
        features=feature,
        checks=check,
        levels=level,
        profiles=profile,
        model=model,
        real_model=real_model,
        keep_going=keep_going,
        expectations=expectations,
        seed=seed,
        report=report,
        server_python=server_python,
        port_range=port_range,
        start_timeout_s=start_timeout,
        answer_limit_s=answer_limit,
        attachment=Attachment.of(
            prefill_url,
            decode_url,
            reference_url=reference_url,
            router_url=router_url,
            api_key=api_key,
            headers=header,
            handoff_ports=handoff_port,
        ),
    )
    from conformance.execution import try_checks

    raise typer.Exit(try_checks(options, workers=workers, quiet=quiet))
