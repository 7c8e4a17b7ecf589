"""Options by which commands choose what is tried, and on what."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Connectors = Annotated[
    list[str], typer.Option("--connector", "-c", help="Connector to try; repeatable. Default: all.")
]
Features = Annotated[
    list[str], typer.Option("--feature", "-f", help="Only checks of this feature; repeatable.")
]
Checks = Annotated[
    list[str],
    typer.Option("--check", help="Only this check id or pattern, such as 'length/*'; repeatable."),
]
Levels = Annotated[
    list[str],
    typer.Option(
        "--level",
        help="Only cells of this level: core (asked of every connector), extended or provisional; "
        "repeatable. Default: all.",
    ),
]
Profiles = Annotated[
    list[Path], typer.Option("--profile", help="YAML profile of a connector of your own.")
]
ModelName = Annotated[
    str | None,
    typer.Option(help="Model recipe, Hugging Face id or folder. Default: by device, see README."),
]
RealModel = Annotated[
    str,
    typer.Option(help="Real-model checks: auto (where the profile asks for them), all or none."),
]
Seed = Annotated[
    int | None,
    typer.Option(
        help="Prompts depend on it alone. Default: 0; on a running pair another each time, since "
        "prompts that it has seen are in its caches.",
        show_default=False,
    ),
]
ServerPython = Annotated[
    list[str],
    typer.Option(
        help="Interpreter whose environment has vLLM (the suite never imports it), or "
        "CONNECTOR=INTERPRETER for one connector's servers; repeatable."
    ),
]
AnswerLimit = Annotated[
    float,
    typer.Option(
        help="Seconds for an answer to be whole; longer is a hang, and the check fails. Raise it "
        "for models and machines that need longer for some tokens.",
    ),
]
KeepGoing = Annotated[
    bool,
    typer.Option(
        help="Also try the features of a connector that does not transfer, those that its "
        "profile declares unsupported, and all of them where vLLM does not do what the suite takes "
        "for granted."
    ),
]
Ports = Annotated[str, typer.Option(help="Ports to lease from.")]
StartTimeout = Annotated[
    float, typer.Option(help="Seconds for a deployment's servers to become ready.")
]
