"""JSON Schemas of what the matrix writes for other programs.

``python -m matrix.schema`` writes them anew after a change of the models.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from matrix.diff import Diff
from matrix.model import Matrix

FOLDER = Path(__file__).parent
COMMITTED: dict[Path, TypeAdapter[Any]] = {
    FOLDER / "matrix.schema.json": TypeAdapter(Matrix),
    FOLDER / "diff.schema.json": TypeAdapter(Diff),
}


def text_of(adapter: TypeAdapter[Any]) -> str:
    """The schema of a document, as it is written, in the form that is committed."""
    return json.dumps(adapter.json_schema(mode="serialization"), indent=1, sort_keys=True) + "\n"


def main() -> None:
    """Write every committed schema."""
    for file, adapter in COMMITTED.items():
        file.write_text(text_of(adapter), encoding="utf-8")
        print(file.name)


if __name__ == "__main__":
    main()
