"""What passed between vLLM's scheduler and the connector, noted while they work."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import wraps
from typing import Any

from vllm.v1.core.sched.output import SchedulerOutput
from vllm.v1.outputs import KVConnectorOutput

from conformance.contracts.snapshot import differences, plain

ALLOWED_TO_SHRINK = "new_block_ids_to_zero"


@dataclass
class Journal:
    """The facts the clauses look at; request ids are vLLM's."""

    blocks: dict[str, list[int]] = field(default_factory=dict)
    external_tokens: dict[str, int] = field(default_factory=dict)
    promised: dict[str, bool] = field(default_factory=dict)
    params: dict[str, Any] = field(default_factory=dict)
    touched: list[str] = field(default_factory=list)
    metadata: list[Any] = field(default_factory=list)
    sent: Counter[str] = field(default_factory=Counter)
    asked_to_send: set[str] = field(default_factory=set)
    sent_unasked: set[str] = field(default_factory=set)
    received: Counter[str] = field(default_factory=Counter)
    failed_blocks: set[int] = field(default_factory=set)
    failed_requests: set[str] = field(default_factory=set)

    def watch(self, connector: Any) -> None:
        """Note every call that the scheduler makes to this scheduler connector."""
        _after(connector, "update_state_after_alloc", self._allocated)
        _after(connector, "request_finished", self._finished)
        if hasattr(connector, "request_finished_all_groups"):
            _after(connector, "request_finished_all_groups", self._finished)
        build = connector.build_connector_meta

        def watched(output: SchedulerOutput) -> Any:
            before = plain(output)
            metadata = build(output)
            self.touched += [p for p in differences(before, plain(output)) if not _shrunk(p)]
            self.metadata.append(metadata)
            return metadata

        connector.build_connector_meta = watched

    def executed(self, finished: set[str], output: KVConnectorOutput | None) -> None:
        """Note what the worker connector reported in one step."""
        self.asked_to_send |= finished
        if output is None:
            return
        sent = set(output.finished_sending or ())
        self.sent.update(sent)
        self.sent_unasked |= sent - self.asked_to_send
        self.received.update(output.finished_recving or ())
        self.failed_blocks |= output.invalid_block_ids
        self.failed_requests |= output.failed_recving

    def _allocated(self, _: Any, request: Any, blocks: Any, num_external_tokens: int) -> None:
        known = self.external_tokens.get(request.request_id, 0)
        self.external_tokens[request.request_id] = max(known, num_external_tokens)
        self.blocks[request.request_id] = list(blocks.get_block_ids()[0])

    def _finished(self, answer: tuple[bool, Any], request: Any, *_: Any) -> None:
        self.promised[request.request_id] = bool(answer[0])
        self.params[request.request_id] = answer[1]


def _shrunk(path: str) -> bool:
    # vLLM 0.32.0 documents one exception: a connector that loads synchronously may take blocks
    # it overwrites out of the list of blocks to zero (KVConnectorBase_V1.build_connector_meta).
    return path == ALLOWED_TO_SHRINK


def _after(target: Any, method: str, note: Callable[..., None]) -> None:
    original = getattr(target, method)

    @wraps(original)
    def watched(*args: Any, **kwargs: Any) -> Any:
        answer = original(*args, **kwargs)
        note(answer, *args, **kwargs)
        return answer

    setattr(target, method, watched)
