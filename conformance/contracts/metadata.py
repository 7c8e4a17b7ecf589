"""Clauses about ``build_connector_meta``."""

from __future__ import annotations

import pickle

from vllm.v1.core.sched.output import SchedulerOutput

from conformance.contracts.instance import Instance
from conformance.contracts.pair import Pair, prompt_of
from conformance.contracts.setting import LENGTH, Setting
from conformance.contracts.snapshot import differences, plain


class Metadata(Setting):
    """vLLM 0.32.0: ``KVConnectorBase_V1.build_connector_meta``."""

    def test_metadata_builder_leaves_scheduler_output_alone(self, pair: Pair) -> None:
        """build_connector_meta() modifies no field of the scheduler's output; only taking blocks
        out of new_block_ids_to_zero is allowed."""
        pair.load(pair.save(LENGTH, self.prefill_params))
        for side, journal in (("prefill", pair.prefill.journal), ("decode", pair.decode.journal)):
            assert journal.metadata, f"{side}: no metadata was built"
            assert not journal.touched, (
                f"{side}: modified {', '.join(sorted(set(journal.touched)))}"
            )

    def test_metadata_builder_resets_its_state(self, pair: Pair) -> None:
        """After build_connector_meta() a second call with an empty output carries nothing of the
        first."""
        quiet = Quiet(pair.prefill), Quiet(pair.decode)
        saved = pair.prefill.request("saved", prompt_of(LENGTH + 1), dict(self.prefill_params))
        pair.prefill.scheduler.add_request(saved)
        quiet[0].judge_after_a_step("prefill")
        pair.decode.scheduler.add_request(pair.find(pair.save(LENGTH, self.prefill_params)))
        quiet[1].judge_after_a_step("decode")

    def test_metadata_can_be_pickled(self, pair: Pair) -> None:
        """The metadata survives pickling, by which it travels to workers in other processes."""
        pair.load(pair.save(LENGTH, self.prefill_params))
        for built in pair.prefill.journal.metadata + pair.decode.journal.metadata:
            lost = differences(plain(built), plain(pickle.loads(pickle.dumps(built))))
            assert not lost, f"{type(built).__name__}: pickling changes {', '.join(lost)}"


class Quiet:
    """What an instance's connector builds for an empty output while nothing goes on."""

    def __init__(self, instance: Instance) -> None:
        self.instance = instance
        self.nothing = self.built()
        # Clocks and counters change by themselves; they carry nothing of a request.
        self.restless = {*differences(self.nothing, self.built())}

    def built(self) -> object:
        """A plain copy of the metadata for an empty output."""
        build = self.instance.scheduler.connector.build_connector_meta
        return plain(build(SchedulerOutput.make_empty()))

    def filled(self) -> list[str]:
        """The fields that now hold something else than while nothing went on."""
        return [at for at in differences(self.nothing, self.built()) if at not in self.restless]

    def judge_after_a_step(self, side: str) -> None:
        """One step with a request, then the second call."""
        output = self.instance.schedule()
        kept = self.filled()
        self.instance.execute(output)
        assert not kept, f"{side}: a second call with an empty output still fills {', '.join(kept)}"
