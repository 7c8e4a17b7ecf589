"""``init-profile``: a first profile of a connector, from what its class says of itself."""

from __future__ import annotations

import difflib
import os
import re
import sys
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from jinja2 import Environment, PackageLoader, StrictUndefined

from conformance.errors import UsageError
from conformance.features import FEATURES
from conformance.handoffs import HANDOFFS
from conformance.introspection import ConnectorFacts, Introspection, introspect, target
from conformance.profile import Capabilities
from conformance.profile_file import load_profile
from conformance.serving.engine import Installation, inspect

TEMPLATE = "init_profile.yaml.j2"
PARAMS, NONE = "params_from_prefill", "none"
_REMOTE = re.compile(r"(do_)?remote")


def init_profile(
    connector: Annotated[str, typer.Argument(help="Class name, as --kv-transfer-config has it.")],
    module_path: Annotated[
        str | None,
        typer.Option(help="Module of a class that vLLM does not register."),
    ] = None,
    python_path: Annotated[
        list[Path] | None,
        typer.Option(help="Folder in which the module lies, where it is not installed."),
    ] = None,
    server_python: Annotated[
        str, typer.Option(help="Interpreter whose environment has vLLM.")
    ] = sys.executable,
    out: Annotated[
        Path | None, typer.Option(help="The file to write. Default: NAME.yaml here.")
    ] = None,
) -> None:
    """Write a first profile of a connector; TODOs in it say what only its author can know."""
    engine = inspect(server_python)
    folders = [folder.resolve() for folder in python_path or []]
    targets = [target(module_path, connector)] if module_path else []
    found = introspect(engine, targets, folders, partial(typer.echo, err=True))
    facts = _facts_of(found, connector, module_path, engine)
    file = out or Path(f"{name_for(connector)}.yaml")
    write(draft(facts, found, engine, module_path, folders, file), file)
    typer.echo(f"{file}: written and loads; now do its TODOs, then")
    typer.echo(f"kv-conformance run --profile {file} --feature start --feature basic-transfer")


def _facts_of(
    found: Introspection, connector: str, module_path: str | None, engine: Installation
) -> ConnectorFacts:
    facts = found.of(connector, module_path)
    if facts is None:
        known = list(found.registered())
        near = difflib.get_close_matches(connector, known, n=3, cutoff=0.5)
        hint = f"did you mean {' or '.join(map(repr, near))}? " if near else ""
        raise UsageError(
            f"{connector!r} is not registered in vLLM {found.vllm} of {engine.python}; {hint}"
            f"For a class of your own give --module-path. Registered: {', '.join(sorted(known))}"
        )
    if module_path and facts.problem:
        raise UsageError(
            f"--module-path {module_path}: {connector} cannot be loaded by {engine.python}: "
            f"{facts.problem}; install its package there, or name its folder with --python-path"
        )
    return facts


def name_for(connector: str) -> str:
    """A profile's name: ``NixlPushConnector`` becomes ``nixl-push``."""
    stem = re.sub(r"KVConnector|Connector", "", connector) or connector
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "-", stem)
    return re.sub(r"[^a-z0-9]+", "-", words.lower()).strip("-")


def guess_handoff(facts: ConnectorFacts) -> tuple[str, str]:
    """A handoff and the reason for the guess."""
    if facts.problem or facts.returns_params is None:
        return NONE, "the source of the class does not tell whether prefill returns params"
    if not facts.returns_params:
        return NONE, "request_finished of this class returns no params"
    keys = ", ".join(facts.params) or "names its source does not tell"
    if facts.params and not any(_REMOTE.match(key) for key in facts.params):
        return NONE, f"prefill returns params, but they name no remote place ({keys})"
    return PARAMS, f"prefill returns params ({keys})"


def draft(
    facts: ConnectorFacts,
    found: Introspection,
    engine: Installation,
    module_path: str | None,
    folders: list[Path],
    file: Path,
) -> str:
    """The text of the profile."""
    handoff, why = guess_handoff(facts)
    environment = Environment(
        loader=PackageLoader("conformance", "."),
        autoescape=False,  # YAML: every value is a name or a JSON string
        undefined=StrictUndefined,
        trim_blocks=True,
        keep_trailing_newline=True,
    )
    return environment.get_template(TEMPLATE).render(
        connector=facts.name,
        vllm=found.vllm,
        file=file,
        notes=_notes(facts),
        name=name_for(facts.name),
        module_path=module_path,
        python_path=[os.path.relpath(folder, file.parent.resolve()) for folder in folders],
        handoff=handoff,
        handoff_why=why,
        handoffs={kind: (made.__doc__ or "").split("\n")[0] for kind, made in HANDOFFS.items()},
        granularity="token" if handoff == PARAMS else "block",
        prom_metrics=facts.prom_metrics,
        platform=engine.device,
        overrides=facts.overrides,
        capabilities=_capabilities(facts),
        features=[feature.id for feature in FEATURES],
    )


def _notes(facts: ConnectorFacts) -> list[str]:
    """What keeps the class from working here, on one line each."""
    notes = []
    if facts.problem:
        notes.append(f"the class could not be loaded, so little of it is known: {facts.problem}")
    if facts.abstract_left:
        notes.append(f"the class cannot be made yet, it lacks {', '.join(facts.abstract_left)}")
    if facts.takes_kv_cache_config is False:
        notes.append("vLLM passes vllm_config, role, kv_cache_config; the constructor takes fewer")
    return [" ".join(note.split()) for note in notes]


def _capabilities(facts: ConnectorFacts) -> dict[str, bool]:
    if facts.problem:
        return {}
    said = {
        "hma": facts.hma,
        "piecewise_cudagraph": facts.piecewise_cudagraph,
        "load_errors": "get_block_ids_with_load_errors" in facts.overrides,
        "reset_cache": "reset_cache" in facts.overrides,
        "stats": facts.stats,
        "prom_metrics": facts.prom_metrics,
    }
    known = {name: value for name, value in said.items() if isinstance(value, bool)}
    return Capabilities(**known).model_dump(exclude_none=True)


def write(text: str, file: Path) -> None:
    """Write a profile and load it; never over another. Raises :class:`UsageError`."""
    try:
        with file.open("x", encoding="utf-8") as opened:
            opened.write(text)
    except FileExistsError as problem:
        raise UsageError(f"--out {file} exists; give another name, or remove it") from problem
    except OSError as problem:
        raise UsageError(f"--out {file} cannot be written: {problem.strerror}") from problem
    try:
        load_profile(file)
    except UsageError:
        file.unlink()
        raise
