"""The contract of whatever the environment variable ``KV_CONTRACT`` describes, as JSON.

``{"class": "package.module:Name"}`` names a connector or an author's own contract class;
``{"attributes": {...}}`` holds class attributes of a ``ConnectorContract``, and may stand beside
``class``. ``kv-conformance contract`` runs this file.
"""

from __future__ import annotations

import importlib
import json
import os
from typing import Any

from conformance.contracts.connector import ConnectorContract

VARIABLE = "KV_CONTRACT"


def configured(given: dict[str, Any]) -> type[ConnectorContract]:
    """The contract class for a description."""
    attributes, base = dict(given.get("attributes", {})), ConnectorContract
    if name := given.get("class"):
        module, _, attribute = name.partition(":")
        found = getattr(importlib.import_module(module), attribute)
        if issubclass(found, ConnectorContract):
            base = found
        else:
            attributes |= {"connector": attribute, "module_path": module}
    return type("TestConfigured", (base,), attributes)


TestConfigured = configured(json.loads(os.environ[VARIABLE]))
