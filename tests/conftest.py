"""Marks the tests that start processes, so that those of the code alone run by themselves."""

from __future__ import annotations

import pytest

WHOLE_RUNS = ("test_e2e_", "test_contracts_", "test_probe", "test_minder_", "test_daemon")
ENGINE = "engine"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """By file: what a file's name begins with says what its tests start."""
    for item in items:
        if item.path.name.startswith(WHOLE_RUNS) or item.path.parent.name == ENGINE:
            item.add_marker(pytest.mark.whole_run)
