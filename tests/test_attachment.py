"""Telling the suite of a running pair: what is refused with which words, and what is kept back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from conformance.attached_fleet import AttachedFleet
from conformance.attachment import WITH_SECRETS, Attachment, without_secrets
from conformance.clock import RunClock
from conformance.crashes import CrashLedger
from conformance.errors import NotHere, SuiteError, UsageError
from conformance.options import RunOptions
from conformance.plugin_options import options_of
from conformance.profile_file import builtin_profiles
from conformance.recorder import replay_line
from conformance.registry import plan
from conformance.scripted.pairs import Place, place
from conformance.serving.deployment import Shape
from conformance.site import site_of

P, D = "http://p:8100", "http://d:8200"
KEY = "hush-hush-1234"


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with place(tmp_path_factory.mktemp("store")) as made:
        yield made


def options(prefill: str = P, decode: str = D, **more: Any) -> RunOptions:
    attach = {name: more.pop(name) for name in list(more) if name in Attachment.model_fields}
    attachment = Attachment.of(prefill, decode, **attach)
    return RunOptions.of(**{"connectors": ["nixl"], **more, "attachment": attachment})


REFUSED = {
    "gone": (3, "nothing answers there"),
    "locked": (2, "answers HTTP 401: give its key with --api-key"),
    "silent": (3, "start the server without --disable-log-stats"),
    "short": (2, "start the pair with a larger --max-model-len"),
    "other": (2, "serves other, and not 'model'"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_server_that_will_not_do_is_refused_with_the_fix(here: Place, name: str) -> None:
    unfit = {
        "gone": lambda: here.server("decode"),
        "locked": lambda: here.server("decode", api_key=KEY),
        "silent": lambda: here.server("decode", "no_stats"),
        "short": lambda: here.server("decode", max_model_len=512),
        "other": lambda: here.server("decode", name="other"),
    }[name]()
    if name == "gone":
        here.stop(unfit)
    with pytest.raises(SuiteError) as caught:
        site_of(options(here.server("prefill"), unfit, model="model"))
    code, words = REFUSED[name]
    assert caught.value.exit_code == code
    assert words in str(caught.value)
    assert unfit in str(caught.value)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"decode_url": None}, "give --prefill-url and --decode-url together"),
        ({"prefill_url": None, "decode_url": None, "api_key": KEY}, "give --prefill-url and"),
        ({"prefill_url": "host:8100"}, "write it as http://host:8100"),
        ({"prefill_url": "http://me:pw@host"}, "no user or password in a URL"),
        ({"headers": ["X-Tenant"]}, "'Name: value'"),
        ({"handoff_ports": ["bootstrap"]}, "NAME=PORT"),
        ({"handoff_ports": ["bootstrap=99999"]}, "NAME=PORT"),
    ],
)
def test_words_that_make_no_sense_are_refused(given: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError) as caught:
        Attachment.of(**{"prefill_url": P, "decode_url": D, **given})
    assert words in str(caught.value)
    assert "pw" not in str(caught.value)


def test_one_pair_is_one_connector() -> None:
    with pytest.raises(UsageError, match="say which one it runs, with --connector"):
        options(connectors=[])
    with pytest.raises(UsageError, match="--server-python starts servers"):
        options(server_python=["nixl=python3"])


def test_urls_are_taken_as_people_copy_them() -> None:
    attachment = Attachment.of(f"{P}/v1/", f"{D}/")
    assert attachment is not None
    assert (attachment.prefill_url, attachment.decode_url) == (P, D)


def test_a_running_pair_gets_other_prompts_each_time() -> None:
    assert options().seed != options().seed
    assert options(seed=7).seed == 7
    assert RunOptions.of().seed == 0


def test_secrets_are_sent_and_never_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    given = options(api_key=KEY, headers=[f"X-Tenant: {KEY}"])
    assert given.attachment is not None
    sent = {"Authorization": f"Bearer {KEY}", "X-Tenant": KEY}
    assert given.attachment.request_headers() == sent
    handed_on = RunOptions.model_validate_json(given.model_dump_json(context=WITH_SECRETS))
    assert handed_on.attachment is not None
    assert handed_on.attachment.request_headers() == sent
    assert KEY not in given.model_dump_json() + repr(given)
    monkeypatch.setenv("KV_CONFORMANCE_API_KEY", KEY)
    assert RunOptions.model_validate_json(given.model_dump_json()).attachment is not None
    again = Attachment.of(P, D)
    assert again is not None
    assert again.request_headers() == {"Authorization": f"Bearer {KEY}"}


def test_a_command_line_is_kept_without_its_secrets() -> None:
    command = ["kv-conformance", "--api-key", KEY, f"--header=X: {KEY}", "--header", "--seed", "-q"]
    kept = without_secrets(command)
    assert kept == ["kv-conformance", "--api-key", "…", "--header=…", "--header", "…", "-q"]


def test_a_replay_attaches_again(here: Place) -> None:
    given = options(router_url="http://r:1", handoff_ports=["bootstrap=8998"], model="m")
    cell = plan(given, "device not known")[0]
    words = replay_line(cell, given)
    assert f"--prefill-url {P} --decode-url {D} --router-url http://r:1" in words
    assert "--handoff-port bootstrap=8998" in words
    assert "--seed" not in words


def test_another_topology_is_not_run(here: Place, tmp_path: Path) -> None:
    site = site_of(options(*here.pair()))
    assert site.standing is not None
    assert site.options.attachment is not None
    fleet = AttachedFleet(
        site.options.attachment, site.standing, 0, RunClock(), CrashLedger(tmp_path / "crashes")
    )
    with pytest.raises(NotHere, match=r"needs servers started anew \(2P2D\)"):
        fleet.pairs(builtin_profiles()["nixl"], "model", Shape("2P2D", 2, 2))
    fleet.close()


class Given:
    """pytest's configuration, as far as options are concerned."""

    def __init__(self, **words: Any) -> None:
        self._words = words

    def getoption(self, name: str) -> Any:
        lists = (
            *("--connector", "--feature", "--check", "--level"),
            *("--profile", "--server-python", "--header"),
        )
        texts = {"--real-model": "auto", "--report": "r", "--port-range": "20000-21000"}
        default = [] if name in (*lists, "--handoff-port") else texts.get(name)
        numbers = {"--start-timeout": 1.0, "--answer-limit": 2.0}
        numbers |= {"--keep-going": False, "--kv-options": ""}
        return self._words.get(name.strip("-").replace("-", "_"), numbers.get(name, default))


def test_pytest_takes_the_same_words() -> None:
    given: Any = Given(
        connector=["nixl"], prefill_url=P, decode_url=D, api_key=KEY, header=["A: b"]
    )
    options = options_of(given)
    assert options.answer_limit_s == 2
    found = options.attachment
    assert found is not None
    assert (found.prefill_url, found.decode_url) == (P, D)
    assert found.request_headers() == {"Authorization": f"Bearer {KEY}", "A": "b"}
