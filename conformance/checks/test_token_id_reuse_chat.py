"""Token-ID reuse, whatever the chat: what P rendered is what D continues from.

Whatever takes part in rendering (turns, system prompt, tools, template arguments, truncation) is
in P's ids already, so D answers to the ids even if it is told none of it (vllm#48145).
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from conformance import expect
from conformance.case import Case
from conformance.checks.test_reasoning import THINKING
from conformance.client import Body
from conformance.detours import prove_or_recomputed
from conformance.ladder import PROVEN, Climbed
from conformance.learned import without
from conformance.pair import Ask, chat
from conformance.parity import compare
from conformance.registry import check

QUESTION = "How many crates were counted on that day?"
OPENING = "The keeper counted"
SCHEMA: Body = {
    "type": "object",
    "properties": {"quay": {"enum": ["north", "south"]}, "full": {"type": "boolean"}},
    "required": ["quay", "full"],
    "additionalProperties": False,
}
JSON: Body = {
    "response_format": {"type": "json_schema", "json_schema": {"name": "quay", "schema": SCHEMA}}
}
ECHO_IS_COMPUTED = (
    "echo asks for log-probabilities of the prompt even where none are wanted (vLLM 0.32.0: "
    "top_logprobs, 0 by default, becomes prompt_logprobs in chat_completion/protocol.py)"
)
# Fields that only rendering reads.
RENDERED = (
    *("add_generation_prompt", "continue_final_message", "chat_template_kwargs", "tools"),
    "truncate_prompt_tokens",
)


@dataclass(frozen=True)
class Conversation:
    """Turns around a long text, as (role, content), and what else a chat is made of.

    ``blocks``: of these and a few tokens more is what truncation leaves of the prompt.
    """

    turns: Callable[[str], list[tuple[str, str]]]
    fields: Body = field(default_factory=dict)
    tools: bool = False
    blocks: int | None = None

    def body(self, text: str, block: int) -> Body:
        """A chat that can be compared."""
        messages = [{"role": role, "content": content} for role, content in self.turns(text)]
        body = {**chat(text), "messages": messages, **self.fields}
        body |= {"tools": [_tool(text)]} if self.tools else {}
        body |= {"truncate_prompt_tokens": self.blocks * block + 5} if self.blocks else {}
        return body


def _tool(text: str) -> Body:
    """Its description begins differently in every prompt: a template may put tools first."""
    parameters = {"type": "object", "properties": {"quay": {"type": "string"}}}
    function = {"name": "count", "description": text[:200], "parameters": parameters}
    return {"type": "function", "function": function}


def _question(text: str) -> list[tuple[str, str]]:
    return [("user", f"{text}\n{QUESTION}")]


CONVERSATIONS = {
    "several turns": Conversation(
        lambda text: [("user", text), ("assistant", "As you say."), ("user", QUESTION)]
    ),
    "system prompt": Conversation(lambda text: [("system", text), ("user", QUESTION)]),
    "no generation prompt": Conversation(_question, {"add_generation_prompt": False}),
    "continued message": Conversation(
        lambda text: [*_question(text), ("assistant", OPENING)],
        {"add_generation_prompt": False, "continue_final_message": True},
    ),
    "tools": Conversation(_question, tools=True),
    "structured output": Conversation(_question, {**JSON, "max_tokens": 48}),
    "truncated": Conversation(_question, blocks=2),
}


def _ask(case: Case, name: str) -> Ask:
    return Ask(
        f"chat with P's token ids: {name}",
        "chat/completions",
        lambda variant: CONVERSATIONS[name].body(
            case.text(2 * case.block + 40, variant), case.block
        ),
        reuse_ids=True,
    )


@check(
    "token-ids/conversation",
    feature="token-id-reuse",
    level="extended",
    cases=tuple(CONVERSATIONS),
)
def test_ids_hold_all_that_was_rendered(case: Case) -> None:
    """P's token ids give the answer to the chat, and do so if D is told another, plain chat."""
    ask = _ask(case, case.name)
    climbed = case.prove(ask)
    _must_be_rendered_alike(case, climbed)
    _plain_chat_with_ids(case, ask)


@check(
    "token-ids/template-arguments",
    feature="token-id-reuse",
    level="extended",
    cases=("enable_thinking", "tools"),
    shape=THINKING,
)
def test_ids_hold_what_the_template_was_told(case: Case) -> None:
    """What a template makes of its arguments and of tools is in P's ids, and D is told neither."""

    def body(variant: int) -> Body:
        text = case.text(2 * case.block, variant)
        told = {"chat_template_kwargs": {"enable_thinking": False}}
        return {**chat(text), **({"tools": [_tool(text)]} if case.name == "tools" else told)}

    ask = Ask(f"chat with P's token ids: {case.name}", "chat/completions", body, reuse_ids=True)
    climbed = case.prove(ask)
    bare = case.pair.expected(ask.endpoint, without(body(PROVEN), *RENDERED))
    differs = bare.prompt_token_ids != climbed.expected.prompt_token_ids
    expect.true(differs, "the template should render another prompt", "the same as without")
    _must_be_rendered_alike(case, climbed)
    _plain_chat_with_ids(case, ask)


@check("token-ids/echo", feature="token-id-reuse", level="extended")
def test_echo_renders_the_messages(case: Case) -> None:
    """With echo, the messages are rendered again: they decide, and token ids are not looked at.

    vLLM 0.32.0 does so because it needs the text of the prompt (``_reused_prompt_token_ids``).
    """
    said = CONVERSATIONS["continued message"]

    def body(variant: int) -> Body:
        made = said.body(case.text(2 * case.block, variant), case.block)
        return {**without(made, "logprobs", "top_logprobs"), "echo": True}

    ask = Ask("chat with echo and P's token ids", "chat/completions", body, reuse_ids=True)
    climbed = prove_or_recomputed(case, ask, ECHO_IS_COMPUTED)
    expect.equal(climbed.answer.text, climbed.expected.text, "text with echo")
    starts = climbed.answer.text.startswith(OPENING)
    expect.true(starts, f"the answer should begin with {OPENING!r}", climbed.answer.text)
    of_messages, of_ids = ask.body(3), ask.body(4)
    other = case.pair.expected(ask.endpoint, of_ids).prompt_token_ids
    _, handed = case.pair.prefill_leg(ask.endpoint, of_messages)
    answer, _ = case.pair.decode_leg(ask.endpoint, of_messages, handed.with_ids(other))
    found = compare(case.pair.expected(ask.endpoint, of_messages), answer, case.pair.model.dtype)
    case.saw("answer with another chat's ids, against the reference's for the messages", found)
    expect.true(found.equal, "with echo, the messages should decide", found.describe())


def _must_be_rendered_alike(case: Case, climbed: Climbed) -> None:
    wanted = climbed.expected.prompt_token_ids
    case.saw("tokens of the prompt", len(wanted))
    for role, leg in (("prefill", climbed.legs.prefill), ("decode", climbed.legs.decode)):
        what = f"prompt_token_ids of {role}, against the reference's"
        expect.equal(leg.prompt_token_ids, wanted, what)


def _plain_chat_with_ids(case: Case, ask: Ask) -> None:
    """D is told another chat, without what took part in rendering, and P's ids."""
    body = ask.body(3)
    plain = {**without(body, *RENDERED), "messages": chat(case.text(20, "plain"))["messages"]}
    first, handed = case.pair.prefill_leg(ask.endpoint, body)
    answer, _ = case.pair.decode_leg(ask.endpoint, plain, handed.with_ids(first.prompt_token_ids))
    expected = case.pair.expected(ask.endpoint, body)
    found = compare(expected, answer, case.pair.model.dtype)
    case.saw("answer to the ids and a plain chat", found.describe())
    expect.equal(answer.prompt_tokens, expected.prompt_tokens, "prompt_tokens of decode")
    expect.true(found.equal, "the answer should be that of the ids", found.describe())
