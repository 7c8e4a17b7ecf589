"""Token-ID reuse at its limits: the ids are taken as they are, or refused in clear words.

They are not tokenized text but numbers that a client sends, so they can be anything (vllm#48145).
"""

from collections.abc import Sequence

from conformance import expect
from conformance.answer import Answer
from conformance.case import Case
from conformance.errors import SuiteError
from conformance.handoffs import Handed
from conformance.learned import without
from conformance.metrics import Meter, TokenSources
from conformance.pair import Ask, chat, completion
from conformance.parity import compare
from conformance.registry import check


def _chat(case: Case) -> Ask:
    return Ask(
        "chat with P's token ids",
        "chat/completions",
        lambda variant: chat(case.text(2 * case.block, variant), max_tokens=8),
        reuse_ids=True,
    )


@check(
    "token-ids/too-long",
    feature="token-id-reuse",
    level="extended",
    cases=("unstreamed", "streamed", "to be truncated"),
)
def test_ids_beyond_the_context_are_refused(case: Case) -> None:
    """More token ids than the model's context holds are a 400 that says so."""
    ask = _chat(case)
    case.prove(ask)
    most = _context(case)
    _, handed = case.pair.prefill_leg(ask.endpoint, ask.body(3))
    body = handed.with_ids(case.ids(most + 1, "long")).into(ask.body(3))
    body |= {"stream": True} if case.name == "streamed" else {}
    body |= {"truncate_prompt_tokens": most // 2} if case.name == "to be truncated" else {}
    refused = case.pair.decode.send(ask.endpoint, body, handed.headers)
    seen = {"status": refused.status_code, "body": refused.text[:400]}
    case.saw(f"{most + 1} token ids, where the context has {most}", seen)
    expect.equal(refused.status_code, 400, "HTTP status of too many token ids")
    named = "context" in refused.text or "max_model_len" in refused.text
    expect.true(named, "the error should name the model's context", seen)
    _must_be_healthy(case)


@check("token-ids/other-words", feature="token-id-reuse", level="extended")
def test_ids_of_another_tokenizer_are_what_they_are(case: Case) -> None:
    """Valid token ids that no rendering of any chat would give decide the prompt all the same."""
    ask = _chat(case)
    case.prove(ask)
    ids = case.ids(2 * case.block + 5, "words")
    body = ask.body(3)
    first, handed = case.pair.prefill_leg(ask.endpoint, body, ids=ids)
    expect.equal(list(first.prompt_token_ids), ids, "prompt_token_ids of prefill")
    meter = Meter.on(case.pair.decode)
    answer, _ = case.pair.decode_leg(ask.endpoint, body, handed.with_ids(ids))
    _must_have_transferred(case, meter, len(ids))
    _must_be_answer_to(case, ids, answer)


@check(
    "token-ids/first-token-appended",
    feature="token-id-reuse",
    level="extended",
    cases=("within a block", "at the end of a block"),
    intrusive=True,
)
def test_ps_first_token_may_be_appended(case: Case) -> None:
    """D given P's prompt and the token that P sampled goes on after it, or refuses; it stays alive.

    A router that keeps P's token does so. At the end of a block D needs one block more than P has
    (vllm#50558).
    """
    ask = _chat(case)
    case.prove(ask)
    ids = case.ids(2 * case.block + (5 if case.name == "within a block" else 0), "prompt")
    body = ask.body(3)
    first, handed = case.pair.prefill_leg(ask.endpoint, body, ids=ids)
    longer = [*ids, *first.token_ids]
    expect.equal(len(longer), len(ids) + 1, "token ids with the one that P sampled")
    answer, _ = case.pair.decode_leg(ask.endpoint, body, handed.with_ids(longer))
    _must_be_answer_to(case, longer, answer)
    _must_be_healthy(case)


@check("token-ids/completions", feature="token-id-reuse", level="extended")
def test_ids_are_the_prompt_of_completions(case: Case) -> None:
    """On completions, P's ids are D's prompt; ids in kv_transfer_params do not change it."""
    ask = Ask(
        "completion of a text",
        "completions",
        lambda variant: completion(case.text(2 * case.block, variant)),
    )
    case.prove(ask)
    body, dtype = ask.body(3), case.pair.model.dtype
    expected = case.pair.expected(ask.endpoint, body)
    first, handed = case.pair.prefill_leg(ask.endpoint, body)
    expect.equal(first.prompt_token_ids, expected.prompt_token_ids, "prompt_token_ids of prefill")
    other = handed.with_ids(case.ids(len(first.prompt_token_ids), "other"))
    meter = Meter.on(case.pair.decode)
    by_ids = {**body, "prompt": list(first.prompt_token_ids)}
    answer, _ = case.pair.decode_leg(ask.endpoint, by_ids, other)
    _must_have_transferred(case, meter, expected.prompt_tokens)
    found = compare(expected, answer, dtype)
    case.saw("answer to P's ids as the prompt, against that to the text", found.describe())
    expect.true(found.equal, "the answer should be that to the prompt", found.describe())


@check("token-ids/cache-salt", feature="token-id-reuse", level="extended")
def test_a_cache_salt_holds_for_ids(case: Case) -> None:
    """With a cache_salt, token ids transfer, and decode finds them again under that salt alone."""
    salted = Ask(
        "chat with P's token ids and a cache_salt",
        "chat/completions",
        lambda variant: {**_chat(case).body(variant), "cache_salt": f"salt-{variant}"},
        reuse_ids=True,
    )
    climbed = case.prove(salted)
    ids = climbed.legs.prefill.prompt_token_ids
    body = without(salted.body(0), "cache_salt")
    whole = (len(ids) - 1) // case.block * case.block
    for salt, wanted in (("salt-0", whole), ("another", 0)):
        meter = Meter.on(case.pair.decode)
        answer, _ = case.pair.decode_leg(
            salted.endpoint, {**body, "cache_salt": salt}, Handed().with_ids(ids)
        )
        hits = TokenSources.of(meter.delta()).local_cache_hit
        case.saw(f"tokens found in decode's own cache, salt {salt!r}", hits)
        expect.equal(hits, wanted, f"local_cache_hit with the salt {salt!r}")
        found = compare(climbed.expected, answer, case.pair.model.dtype)
        expect.true(found.equal, "the salt should not change the answer", found.describe())


def _must_have_transferred(case: Case, meter: Meter, tokens: int) -> None:
    external = TokenSources.of(meter.delta()).external
    promised = case.pair.profile.granularity.promised(tokens, case.block)
    case.saw(f"external_kv_transfer for {tokens} token ids", external)
    expect.true(
        external >= promised, f"external_kv_transfer should be at least {promised}", external
    )


def _must_be_answer_to(case: Case, ids: Sequence[int], answer: Answer) -> None:
    """The answer is the reference's to a completion of these ids."""
    expected = case.pair.expected("completions", completion(list(ids), max_tokens=8))
    found = compare(expected, answer, case.pair.model.dtype)
    case.saw(f"answer to {len(ids)} token ids, against the reference's", found.describe())
    expect.true(found.equal, "the answer should be that to the ids", found.describe())


def _must_be_healthy(case: Case) -> None:
    """Both servers are, and a valid request of the same kind goes through."""
    for client in (case.pair.prefill, case.pair.decode):
        role = client.server.role
        expect.true(client.server.healthy(), f"the {role} server should be healthy", "not healthy")
    ask = _chat(case)
    expected = case.pair.expected(ask.endpoint, ask.body(5))
    found = compare(expected, case.pair.both_legs(ask, ask.body(5)).decode, case.pair.model.dtype)
    case.saw("a valid request afterwards", found.describe())
    expect.true(found.equal, "a valid request afterwards should be answered", found.describe())


def _context(case: Case) -> int:
    """Tokens that decode's context holds. Raises :class:`SuiteError` where it does not tell."""
    page = case.pair.decode.page("/v1/models")
    cards = page.json().get("data", ()) if page.status_code == 200 else ()
    for card in cards:
        if card.get("id") == case.pair.decode.server.model and card.get("max_model_len"):
            return int(card["max_model_len"])
    raise SuiteError(f"{case.pair.decode.server.url}/v1/models tells no max_model_len")
