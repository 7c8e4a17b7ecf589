"""Reads the source of a connector class: does its prefill answer carry ``kv_transfer_params``?

Run under a server's Python with :mod:`introspect`; the standard library is all it needs.
"""

from __future__ import annotations

import ast
import inspect
import sys
import textwrap
from collections.abc import Iterator
from typing import Any

HOOKS = ("request_finished", "request_finished_all_groups")
PARAMS, NOTHING, ELSEWHERE, UNCLEAR = "params", "nothing", "elsewhere", "unclear"


def returned_params(cls: type, base: type) -> dict[str, Any]:
    """``returns_params`` (``None``: its source does not tell), and the names of the params.

    The hook returns a pair whose second part is the params. Most connectors pass the call on to
    a scheduler class of theirs, so the classes that the connector's own source names are read
    too.
    """
    own = [part for part in cls.__mro__ if part not in base.__mro__]
    named = [helper for part in own for helper in _named_classes(part) if helper not in own]
    own_hooks = list(_hooks(cls, base))
    further = [hook for helper in dict.fromkeys(named) for hook in _hooks(helper, base)]
    hooks = [*own_hooks, *further]
    seen = {_kind(answer) for hook in hooks for answer in _answers(hook)}
    if PARAMS in seen:
        return {"returns_params": True, "params": sorted({n for h in hooks for n in _names(h)})}
    told = UNCLEAR not in seen and (ELSEWHERE not in seen or bool(further))
    return {"returns_params": False if told else None, "params": []}


def _named_classes(part: type) -> Iterator[type]:
    """Classes with such a hook that a class's source speaks of, as its module knows them."""
    tree = _tree(part)
    known = vars(sys.modules[part.__module__])
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} if tree else set()
    for name in sorted(names):
        found = known.get(name)
        if isinstance(found, type) and any(hasattr(found, hook) for hook in HOOKS):
            yield found


def _hooks(cls: type, base: type) -> Iterator[ast.AST]:
    """The hooks that a class answers with; an ancestor's too, where ``super()`` is called."""
    for hook in HOOKS:
        for part in cls.__mro__:
            found = vars(part).get(hook) if part not in base.__mro__ else None
            # An abstract declaration, as in SupportsHMA, answers nothing.
            tree = None if getattr(found, "__isabstractmethod__", False) else _tree(found)
            if tree:
                yield tree
            if tree and "super()" not in ast.unparse(tree):
                break


def _answers(hook: ast.AST) -> Iterator[ast.expr]:
    for node in ast.walk(hook):
        if isinstance(node, ast.Return) and node.value is not None:
            yield node.value


def _kind(answer: ast.expr) -> str:
    if isinstance(answer, ast.Tuple) and len(answer.elts) == 2:
        params = answer.elts[1]
        return NOTHING if isinstance(params, ast.Constant) and params.value is None else PARAMS
    called = answer.func if isinstance(answer, ast.Call) else None
    if not isinstance(called, ast.Attribute) or called.attr not in HOOKS:
        return UNCLEAR
    # Another hook of the same object is read anyway.
    return NOTHING if ast.unparse(called.value) in ("self", "super()") else ELSEWHERE


def _names(hook: ast.AST) -> Iterator[str]:
    """Keys of the dictionaries that a hook builds."""
    for node in ast.walk(hook):
        if isinstance(node, ast.Dict):
            keys = [key.value for key in node.keys if isinstance(key, ast.Constant)]
            yield from (key for key in keys if isinstance(key, str))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "dict":
            yield from (keyword.arg for keyword in node.keywords if keyword.arg)


def _tree(thing: Any) -> ast.AST | None:
    try:
        return ast.parse(textwrap.dedent(inspect.getsource(thing)))
    except (OSError, TypeError, SyntaxError):
        return None
