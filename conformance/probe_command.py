"""The command ``probe``: is this running pair really transferring? Seconds, not minutes."""

from __future__ import annotations

from typing import Annotated

import typer

from conformance.attached_options import (
    ApiKey,
    HandoffPort,
    Header,
    ReferenceUrl,
    RouterUrl,
)
from conformance.attachment import Attachment
from conformance.errors import UsageError
from conformance.probe import probe_pair
from conformance.probe_result import Request
from conformance.probe_view import show


def probe(
    prefill_url: Annotated[str, typer.Option(help="Prefill instance's own URL.")],
    decode_url: Annotated[str, typer.Option(help="Decode instance's own URL.")],
    router_url: RouterUrl = None,
    reference_url: ReferenceUrl = None,
    connector: Annotated[
        str | None,
        typer.Option(
            "--connector",
            "-c",
            help="Connector that the pair runs: its profile says how much has to transfer, and "
            "which of its counters have to move.",
        ),
    ] = None,
    handoff: Annotated[
        str | None,
        typer.Option(
            help="How the legs are joined, where no profile knows the connector. Without either, "
            "P is asked with NIXL's params, and what it returns decides."
        ),
    ] = None,
    model: Annotated[
        str | None, typer.Option(help="Served model name. Default: each server's first.")
    ] = None,
    tokens: Annotated[
        int | None,
        typer.Option(help="Prompt length. Default: two and a half blocks.", show_default=False),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(
            help="Prompts depend on it alone. Default: another each time, since a prompt that was "
            "sent before is in the caches.",
            show_default=False,
        ),
    ] = None,
    api_key: ApiKey = None,
    header: Header = [],  # noqa: B006
    handoff_port: HandoffPort = [],  # noqa: B006
    timeout: Annotated[float, typer.Option(help="Seconds that any one answer may take.")] = 20.0,
    as_json: Annotated[bool, typer.Option("--json", help="All that was seen, as JSON.")] = False,
) -> None:
    """Is this running pair really transferring? Seconds, not minutes.

    A fresh prompt is prefilled on P and continued on D, and D's own counters have to say that
    its KV came from outside. Then it is tried to be wrong: D is asked without the handoff, and
    given another prompt's. Nothing is started or changed; keep other traffic off meanwhile.

    Exit codes: 0 it transfers; 1 it does not; 2 bad usage; 3 could not tell.
    """
    attachment = Attachment.of(
        prefill_url,
        decode_url,
        reference_url=reference_url,
        router_url=router_url,
        api_key=api_key,
        headers=header,
        handoff_ports=handoff_port,
    )
    if attachment is None:
        raise UsageError("--prefill-url and --decode-url are empty: give both servers' URLs")
    found = probe_pair(
        Request(attachment, connector, handoff, model, tokens, seed, answer_limit_s=timeout)
    )
    if as_json:
        typer.echo(found.model_dump_json(indent=1))
    else:
        show(found)
    raise typer.Exit(found.exit_code)
