"""MultiConnector: what children bring is joined, and never shared by accident."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from sample_profiles import both, daemon, profile, side

from conformance.composition import compose
from conformance.errors import UsageError
from conformance.profile import Granularity, Profile

PUSHES = profile(
    name="pushes",
    connector="PushConnector",
    handoff="params_from_prefill",
    granularity="token",
    prefill=side("prefill", env={"PUSH_PORT": "${port:side}"}, args=["--push"]),
    decode=side("decode", extra_config={"peer": "${port:side}"}),
    movement=[{"side": "decode", "metric": "pushed_bytes"}],
    packages=["pushlib", "zmq"],
)
STORES = profile(
    name="stores",
    connector="StoreConnector",
    python_path=["../shims"],
    daemons=[daemon()],
    files={"a.json": {"dir": "${dir:store}", "master": "${port:master}"}},
    **both(extra_config={"config": "${file:a.json}", "path": "${dir:store}"}),
    movement=[{"side": "prefill", "files": "store"}],
    settle={"metric": "stored"},
    causality={"method": "damage_files", "dir": "store"},
    packages=["zmq"],
    shims=[{"platform": "cpu", "connector": "Shim", "module_path": "shim", "why": "no GPU"}],
)


def multi(*children: Profile, **changes: Any) -> Profile:
    parent = profile(name="multi", connector="MultiConnector", **changes)
    return compose(parent, list(children))


def test_the_first_child_says_how_much_a_variant_promises_and_no_more() -> None:
    cut = {"support": "yes", "granularity": "all_but_last"}
    first = PUSHES.model_copy(
        update={"variants": profile(variants={"hybrid-ssm": cut, "moe": cut}).variants}
    )
    joined = multi(first, STORES, variants={"moe": {"support": "yes"}})
    assert joined.in_variant("hybrid-ssm").granularity is Granularity.ALL_BUT_LAST
    assert joined.variants["hybrid-ssm"].support == "partly"
    assert joined.variants["moe"].granularity is None


def test_leases_of_children_carry_their_names() -> None:
    joined = multi(PUSHES, STORES)
    assert joined.placeholders("prefill") == {
        ("port", "pushes-side"),
        ("file", "stores-a.json"),
        ("dir", "stores-store"),
    }
    assert joined.placeholders() == {
        ("dir", "stores-store"),
        ("port", "stores-master"),
        ("bin", "master"),
    }


def test_everything_that_names_a_lease_is_renamed_with_it() -> None:
    joined = multi(PUSHES, STORES)
    assert joined.files == {
        "stores-a.json": {"dir": "${dir:stores-store}", "master": "${port:stores-master}"}
    }
    (master,) = joined.daemons
    assert master.ready_port == "stores-master"
    assert master.command == ("${bin:master}", "--port=${port:stores-master}")
    assert [(m.metric, m.files) for m in joined.movement] == [
        ("pushed_bytes", None),
        (None, "stores-store"),
    ]
    assert joined.parts[1].causality.dir == "stores-store"


def test_the_same_child_twice_under_two_names_shares_nothing() -> None:
    other = STORES.model_copy(update={"name": "other"})
    joined = multi(STORES, other)
    one, two = (part.placeholders("prefill") for part in joined.parts)
    assert one
    assert not one & two
    assert set(joined.files) == {"stores-a.json", "other-a.json"}


def test_the_first_child_says_what_is_promised_and_how_causality_shows() -> None:
    pushed, stored = multi(PUSHES, STORES), multi(STORES, PUSHES)
    assert (pushed.granularity, pushed.causality.method) == (Granularity.TOKEN, "swap_params")
    assert (stored.granularity, stored.causality.method) == (Granularity.BLOCK, "damage_files")
    assert (pushed.settle, stored.settle) == (None, STORES.settle)


def test_children_that_decode_does_not_load_from_are_seen_to_save() -> None:
    pushed, stored = multi(PUSHES, STORES), multi(STORES, PUSHES)
    assert [(m.side, m.metric or m.files) for m in pushed.movement] == [
        ("decode", "pushed_bytes"),
        ("prefill", "stores-store"),
    ]
    assert [(m.side, m.files) for m in stored.movement] == [("prefill", "stores-store")]


@pytest.mark.parametrize(
    ("of_children", "joined"),
    [
        (["params_from_prefill", "none"], "params_from_prefill"),
        (["none", "none"], "none"),
        (["params_from_prefill", "params_from_prefill"], "params_from_prefill"),
        (["mooncake_bootstrap", "params_from_prefill"], "mooncake_bootstrap+params_from_prefill"),
    ],
)
def test_handoffs_are_joined_without_repeats(of_children: list[str], joined: str) -> None:
    children = [profile(name=f"child{n}", handoff=kind) for n, kind in enumerate(of_children)]
    assert multi(*children).handoff == joined


def test_packages_folders_and_arguments_are_joined() -> None:
    joined = multi(PUSHES, STORES, python_path=["own"], packages=["multilib"], **both(args=["-x"]))
    assert joined.packages == ("multilib", "pushlib", "zmq")
    assert joined.python_folders() == (Path("/profiles/own"), Path("/shims"))
    assert joined.prefill.args == ("-x", "--push")
    assert joined.decode.args == ("-x",)


def test_what_the_parent_itself_needs_is_kept() -> None:
    own = daemon(name="router", command=["r", "${port:router}"], ready_port="router")
    joined = multi(PUSHES, STORES, daemons=[own], files={"own.txt": "${dir:own}"})
    assert [one.name for one in joined.daemons] == ["router", "master"]
    assert set(joined.files) == {"own.txt", "stores-a.json"}


def test_children_that_disagree_on_a_variable_are_refused_by_name() -> None:
    one = profile(name="one", **both(env={"LEVEL": "1"}))
    two = profile(name="two", **both(env={"LEVEL": "2"}))
    with pytest.raises(UsageError) as caught:
        multi(one, two)
    message = str(caught.value)
    assert "/profiles/mine.yaml: children: two sets prefill.env.LEVEL to '2'" in message
    assert "'1' is set already" in message
    assert "parent's own env" in message


def test_children_that_agree_share_a_variable() -> None:
    one, two = (profile(name=name, **both(env={"LEVEL": "1"})) for name in ("one", "two"))
    assert multi(one, two).decode.env == {"LEVEL": "1"}


def test_the_parents_own_variable_decides() -> None:
    one = profile(name="one", **both(env={"LEVEL": "1"}))
    two = profile(name="two", **both(env={"LEVEL": "2", "OTHER": "x"}))
    joined = multi(one, two, **both(env={"LEVEL": "3"}))
    assert joined.prefill.env == {"LEVEL": "3", "OTHER": "x"}


def test_the_engine_is_given_every_child_through_its_shim() -> None:
    joined = multi(PUSHES, STORES)
    config = joined.kv_transfer_config("decode", "cpu")
    pushes, stores = config["kv_connector_extra_config"]["connectors"]
    assert (config["kv_connector"], config["kv_role"]) == ("MultiConnector", "kv_consumer")
    assert pushes == {
        "kv_connector": "PushConnector",
        "kv_role": "kv_consumer",
        "kv_connector_extra_config": {"peer": "${port:pushes-side}"},
    }
    assert (stores["kv_connector"], stores["kv_connector_module_path"]) == ("Shim", "shim")
    shipped = joined.kv_transfer_config("decode", "cuda")["kv_connector_extra_config"]
    assert shipped["connectors"][1]["kv_connector"] == "StoreConnector"
    assert "kv_connector_module_path" not in shipped["connectors"][1]


def test_shims_of_children_are_the_parents_too() -> None:
    joined = multi(PUSHES, STORES)
    assert [shim.connector for shim in joined.shims_on("cpu")] == ["Shim"]
    assert joined.shims_on("cuda") == []


def test_children_of_children_are_kept() -> None:
    inner = compose(profile(name="inner", connector="MultiConnector"), [PUSHES])
    config = multi(inner).kv_transfer_config("decode", "cuda")["kv_connector_extra_config"]
    (nested,) = config["connectors"]
    assert nested["kv_connector_extra_config"]["connectors"] == [
        {
            "kv_connector": "PushConnector",
            "kv_role": "kv_consumer",
            "kv_connector_extra_config": {"peer": "${port:inner-pushes-side}"},
        }
    ]
    assert ("port", "inner-pushes-side") in multi(inner).placeholders("prefill")
