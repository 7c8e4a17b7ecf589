"""The words with which a command is told of a pair that runs already."""

from __future__ import annotations

from typing import Annotated

import typer

from conformance.attachment import API_KEY_VARIABLE

PrefillUrl = Annotated[
    str | None,
    typer.Option(help="Prefill instance's own URL, such as http://host:8100."),
]
DecodeUrl = Annotated[
    str | None,
    typer.Option(help="Decode instance's own URL, such as http://host:8200."),
]
ReferenceUrl = Annotated[
    str | None,
    typer.Option(
        help="A server of the same model without a connector, as the oracle. Without it decode is "
        "asked itself, without the handoff and with a fresh cache_salt."
    ),
]
RouterUrl = Annotated[
    str | None,
    typer.Option(
        help="Send requests to this router, which makes both legs; P's and D's own URLs are still "
        "needed, for their counters are the evidence."
    ),
]
ApiKey = Annotated[
    str | None,
    typer.Option(
        help=f"Key of the servers (--api-key of vllm serve); or set {API_KEY_VARIABLE}, which no "
        "process list shows. Never written to a report."
    ),
]
Header = Annotated[
    list[str],
    typer.Option(help="'Name: value' that every request carries, for a gateway; repeatable."),
]
HandoffPort = Annotated[
    list[str],
    typer.Option(
        help="NAME=PORT that the connector's handoff has to know, such as bootstrap=8998 for "
        "Mooncake; repeatable."
    ),
]
