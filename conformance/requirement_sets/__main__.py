"""Writes the next requirement set, if the catalogue of checks differs from the latest one."""

from __future__ import annotations

from conformance.requirement_sets import FOLDER, catalogue, differences, frozen, latest, text_of


def main() -> None:
    """Never changes a set that is there."""
    kept, now = latest(), catalogue()
    if kept and not (changes := differences(kept, now)):
        print(f"{kept.name} is the catalogue: {len(now)} requirements")
        return
    made = frozen(kept.version + 1 if kept else 1, now)
    (FOLDER / f"{made.name}.json").write_text(text_of(made), encoding="utf-8")
    print(f"{made.name}.json: {len(now)} requirements")
    for change in changes if kept else ():
        print(f"  {change}")


if __name__ == "__main__":
    main()
