"""The options of a run for those who live in pytest: the same words as on the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from conformance.attachment import API_KEY_VARIABLE, Attachment
from conformance.deadline import ANSWER_LIMIT_S, START_LIMIT_S
from conformance.options import LEVELS, RunOptions
from conformance.serving.ports import DEFAULT_RANGE


def add_options(parser: pytest.Parser) -> None:
    """Declare them. ``--kv-options`` is how the command line hands over all of its own."""
    add = parser.getgroup("kv-conformance").addoption
    add("--connector", action="append", default=[], help="connector to try (repeatable)")
    add("--feature", action="append", default=[], help="only checks of this feature (repeatable)")
    add("--check", action="append", default=[], help="only this check id or pattern (repeatable)")
    add(
        "--level",
        action="append",
        default=[],
        choices=LEVELS,
        help="only cells of this level (repeatable)",
    )
    add("--profile", action="append", default=[], help="YAML profile of an own connector")
    add("--model", default=None, help="model recipe, Hugging Face id or folder")
    add("--real-model", default="auto", choices=("auto", "all", "none"))
    add(
        "--seed",
        type=int,
        default=None,
        help="prompts depend on it alone (default 0; on a running pair another each time)",
    )
    add("--expectations", default=None, help="YAML file of what is known to fail")
    add("--report", default="reports/runs/latest", help="folder for report.json and logs")
    add(
        "--server-python",
        action="append",
        default=[],
        help="interpreter whose environment has vLLM, or CONNECTOR=interpreter (repeatable)",
    )
    add("--port-range", default=DEFAULT_RANGE, help=f"ports to lease (default {DEFAULT_RANGE})")
    add(
        "--start-timeout", type=float, default=START_LIMIT_S, help="seconds for servers to be ready"
    )
    add(
        "--answer-limit",
        type=float,
        default=ANSWER_LIMIT_S,
        help="seconds for an answer to be whole; longer is a hang, and the check fails",
    )
    add(
        "--keep-going",
        action="store_true",
        help="try features of a connector that does not transfer, or that are declared "
        "unsupported, and whatever vLLM does not do that is taken for granted",
    )
    _add_running_pair(parser)
    add("--kv-options", default="", help="all options of a run as JSON, instead of single ones")
    add("--kv-console", default="", help="own progress output: 'lines' or 'quiet'")


def _add_running_pair(parser: pytest.Parser) -> None:
    add = parser.getgroup("kv-conformance, on a pair that runs already").addoption
    add("--prefill-url", default=None, help="prefill instance; nothing is started then")
    add("--decode-url", default=None, help="decode instance")
    add("--reference-url", default=None, help="same model without a connector, as the oracle")
    add("--router-url", default=None, help="router that makes both legs of a request")
    add("--api-key", default=None, help=f"key of the servers; or set {API_KEY_VARIABLE}")
    add("--header", action="append", default=[], help="'Name: value' for every request")
    add("--handoff-port", action="append", default=[], help="NAME=PORT a handoff has to know")


def options_of(config: pytest.Config) -> RunOptions:
    """The run's options. Raises :class:`UsageError` for a name that does not exist."""
    get = config.getoption
    if get("--kv-options"):
        return RunOptions.model_validate_json(get("--kv-options")).validated()
    given: dict[str, Any] = {
        "connectors": get("--connector"),
        "features": get("--feature"),
        "checks": get("--check"),
        "levels": get("--level"),
        "profiles": get("--profile"),
        "model": get("--model"),
        "real_model": get("--real-model"),
        "seed": get("--seed"),
        "report": Path(get("--report")),
        "port_range": get("--port-range"),
        "start_timeout_s": get("--start-timeout"),
        "answer_limit_s": get("--answer-limit"),
        "keep_going": get("--keep-going"),
        "expectations": Path(get("--expectations")) if get("--expectations") else None,
        "attachment": Attachment.of(
            get("--prefill-url"),
            get("--decode-url"),
            reference_url=get("--reference-url"),
            router_url=get("--router-url"),
            api_key=get("--api-key"),
            headers=get("--header"),
            handoff_ports=get("--handoff-port"),
        ),
    }
    return RunOptions.of(server_python=get("--server-python"), **given)
