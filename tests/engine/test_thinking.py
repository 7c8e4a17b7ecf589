"""Streamed reasoning: what vLLM's parser loses, and that the fixtures' one loses nothing."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from conformance.data import fixtures
from conformance.errors import ModelError
from conformance.models import obtain
from conformance.serving.engine import inspect
from engine.conftest import Child

pytestmark = pytest.mark.timeout(400)  # importing vLLM, and the model where it is not built yet

SCRIPT = Path(__file__).parent / "thinking_child.py"
PLUGIN = fixtures() / "parsers" / "thinking.py"
TOLD = ["it is so", '{"cargo":"herring"}']
WHOLE = f"{TOLD[0]}</think>{TOLD[1]}"
# A delta of vLLM's holds the tokens that came since the last one was sent: any number of them.
DELTAS = [
    ["it is", " so", "</", "think", ">", '{"cargo"', ':"herring"}'],
    ["it is", " so", '</think>{"cargo"', ':"herring"}'],
    ["it is", " so</think>", '{"cargo"', ':"herring"}'],
    ["it is", ' so</think>{"cargo"', ':"herring"}'],
    ["it is", " so</", 'think>{"cargo"', ':"herring"}'],
    [WHOLE],
]
IN_THE_DELTA_OF_THE_END = [3, 4, 5]


@pytest.fixture(scope="module")
def fast_model() -> Path:
    """Its tokenizer spells the marks with several tokens."""
    try:
        return Path(obtain("tiny-llama", inspect(sys.executable)).source)
    except ModelError as problem:
        pytest.skip(str(problem))


def streamed(child: Child, model: Path, parser: str, plugin: str = "") -> list[list[str]]:
    """Reasoning and content for each list of deltas."""
    asked = {"model": str(model), "parser": parser, "plugin": plugin, "deltas": DELTAS}
    told: list[list[str]] = child(SCRIPT, asked)
    return told


def test_the_parser_of_the_fixtures_tells_all(engine_child: Child, fast_model: Path) -> None:
    assert all("".join(deltas) == WHOLE for deltas in DELTAS)
    told = streamed(engine_child, fast_model, "thinking", str(PLUGIN))
    assert told == [TOLD] * len(DELTAS)


def test_what_olmo3_loses_of_the_same(engine_child: Child, fast_model: Path) -> None:
    """vllm-project/vllm#55195: with it mended, the plugin is not needed any more."""
    told = streamed(engine_child, fast_model, "olmo3")
    lost = [number for number, each in enumerate(told) if each != TOLD]
    assert lost == IN_THE_DELTA_OF_THE_END, told
