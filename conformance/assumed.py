"""What is assumed of a connector whose profile nobody named: as little as its handoff implies."""

from __future__ import annotations

from conformance.handoffs import Params, handoff_named
from conformance.handoffs.nixl import ParamsFromPrefill
from conformance.metrics import Counters
from conformance.profile import Causality, Granularity, Instance, Movement, Profile, Settle
from conformance.profile_file import builtin_profiles

NO_CHANCE = "what is handed over is not known to hold the KV's place; name the --connector"


def handoff_of(returned: Params | None) -> tuple[str, str]:
    """The handoff that P's answer to NIXL's params speaks of, and why it is taken for that."""
    keys = {key for key, value in (returned or {}).items() if value is not None}
    if keys >= set(ParamsFromPrefill.needed):
        return "params_from_prefill", "assumed: P returned NIXL's params for a remote prefill"
    if "remote_request_id" in keys:
        return "push_params_from_prefill", "assumed: P returned params that name no blocks"
    if keys:
        return "none", f"assumed: P returned params of no known form ({', '.join(sorted(keys))})"
    return "none", "assumed: P returned no params, so decode has to find the KV by the prompt"


def assumed_profile(handoff: str, before: Counters) -> Profile:
    """A connector of that handoff: whole blocks, and the records that shipped profiles know.

    ``before``: P's counters, which tell how a store says that it is done. Raises
    :class:`UsageError` for a handoff that does not exist.
    """
    handoff_named(handoff)
    swaps = "params_from_prefill" in handoff
    return Profile(
        name="assumed",
        title="the connector of this pair",
        connector="unknown",
        summary="A connector known by its handoff alone.",
        handoff=handoff,
        granularity=Granularity.BLOCK,
        prefill=Instance(kv_role="kv_producer"),
        decode=Instance(kv_role="kv_consumer"),
        movement=tuple(_records(handoff)) if handoff != "none" else (),
        settle=_settle(before) if handoff == "none" else None,
        causality=Causality(method="swap_params") if swaps else _no_causality(handoff),
        platforms=(),
    )


def with_exported_records(profile: Profile, prefill: Counters, decode: Counters) -> Profile:
    """The profile with those records of shipped profiles that the servers export at all."""
    sides = {"prefill": prefill, "decode": decode}
    kept = tuple(
        record
        for record in _records(profile.handoff)
        if sides[record.side].total(record.metric or "", **record.labels) > 0
    )
    return profile.model_copy(update={"movement": kept})


def _records(handoff: str) -> list[Movement]:
    found: list[Movement] = []
    for profile in builtin_profiles().values():
        if profile.handoff == handoff and not profile.children:
            found += [r for r in profile.movement if r.metric and r not in found]
    return found


def _settle(before: Counters) -> Settle | None:
    known = [p.settle for p in builtin_profiles().values() if p.settle and p.handoff == "none"]
    return next((settle for settle in known if before.has(settle.metric)), None)


def _no_causality(handoff: str) -> Causality:
    why = "decode is handed nothing that could be another's" if handoff == "none" else NO_CHANCE
    return Causality(method="none", why=why)
