"""JSON Schemas of the documents other programs and people write or read.

``python -m conformance.schemas`` writes them anew after a change of the models.
"""

from __future__ import annotations

import json
from pathlib import Path

from pydantic import BaseModel

from conformance.certificate import Certificate
from conformance.expectations import Expectations
from conformance.profile import Profile
from conformance.report import Report

ROOT = Path(__file__).parent.parent
COMMITTED: dict[Path, type[BaseModel]] = {
    ROOT / "reports" / "report.schema.json": Report,
    ROOT / "reports" / "expectations.schema.json": Expectations,
    ROOT / "reports" / "certificate.schema.json": Certificate,
    ROOT / "conformance" / "profiles" / "profile.schema.json": Profile,
}


def text_of(model: type[BaseModel]) -> str:
    """The schema of a model as it is committed."""
    schema = model.model_json_schema()
    for internal in ("path", "digest"):  # filled in by the loader, not by an author
        if model is Profile:
            schema["properties"].pop(internal)
    return json.dumps(schema, indent=1, sort_keys=True) + "\n"


def main() -> None:
    """Write every committed schema."""
    for file, model in COMMITTED.items():
        file.write_text(text_of(model), encoding="utf-8")
        print(file.relative_to(ROOT))


if __name__ == "__main__":
    main()
