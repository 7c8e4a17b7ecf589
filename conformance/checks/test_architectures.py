"""Architectures: models whose KV is not one block of keys and values for each layer and token.

What a connector takes for granted on a dense model it may get wrong on another: blocks that a
sliding window no longer needs, the state of a Mamba layer that is one for the whole prompt, KV
that belongs to an image and not to its placeholder tokens. Real defects: shared prefixes answered
from another request's state (LMCache#4247), received KV erased before it was read (vllm#42182),
another image's KV (vllm#21611), a failed load that corrupts blocks of several groups
(vllm#52234). Each check has a small model of its own (``fixtures/models``).
"""

from conformance import expect
from conformance.bodies import greedy
from conformance.case import Case
from conformance.client import Body
from conformance.errors import NotHere
from conformance.pair import Ask, completion
from conformance.parity import compare
from conformance.pictures import picture
from conformance.registry import check
from conformance.serving.deployment import Shape
from conformance.variant_start import of_connector

# Of the recipes with a sliding window: no multiple of any block, so that it ends inside one.
WINDOW = 200
IMAGE_SIDE = 168
# With it, Mamba2 dies on a CPU once a prompt fills a block: the operator leaves out the states
# that the cache keeps ("IndexError: index 7 is out of bounds", vLLM 0.32.0, mamba_mixer2.py).
NO_PREFIX_CACHE = Shape("no prefix cache", args=("--no-enable-prefix-caching",))
# Without chunked prefill a step has to hold the longest prompt, or the engine refuses that.
WHOLE_STEPS = ("--max-num-batched-tokens", "2048")
ALONE = Shape("alone", decodes=0, args=WHOLE_STEPS, start_limit_s=150.0)


@check(
    "architecture/qk-norm",
    feature="architectures",
    level="extended",
    model="tiny-qwen3",
    variant="qk-norm",
)
def test_normalised_keys(case: Case) -> None:
    """A model that normalises queries and keys (Qwen3) transfers, with parity."""
    _prove_over_blocks(case)


@check(
    "architecture/moe",
    feature="architectures",
    level="extended",
    model="tiny-qwen3-moe",
    variant="moe",
)
def test_mixture_of_experts(case: Case) -> None:
    """A mixture of experts (Qwen3-MoE) transfers, with parity."""
    _prove_over_blocks(case)


@check(
    "architecture/mla",
    feature="architectures",
    level="extended",
    model="tiny-deepseek-v3",
    variant="mla",
)
def test_latent_attention(case: Case) -> None:
    """Multi-head latent attention (DeepSeek-V3) transfers, with parity."""
    _prove_over_blocks(case)


@check(
    "architecture/sliding-window",
    feature="architectures",
    level="extended",
    model="tiny-mistral",
    variant="sliding-window",
)
def test_a_window_in_every_layer(case: Case) -> None:
    """With a sliding window in every layer (Mistral), prompts within it and beyond transfer."""
    _prove_around_the_window(case)


@check(
    "architecture/hybrid-attention",
    feature="architectures",
    level="extended",
    model="tiny-gemma3",
    variant="sliding-window",
)
def test_a_window_in_some_layers(case: Case) -> None:
    """With a sliding window in some layers (Gemma 3), prompts within it and beyond transfer.

    vLLM keeps a group of blocks for each kind of layer, and a handoff has to bring all of them.
    """
    _prove_around_the_window(case)


@check(
    "architecture/hybrid-ssm",
    feature="architectures",
    level="extended",
    model="tiny-granite-hybrid",
    shape=NO_PREFIX_CACHE,
    variant="hybrid-ssm",
)
def test_mamba_between_attention(case: Case) -> None:
    """Mamba2 layers between attention (Granite 4) transfer state and KV, with parity.

    A state is that of a whole prompt: what decode has to compute itself cannot be taken back.
    """
    _prove_over_steps(case)


@check(
    "architecture/hybrid-ssm-prefix",
    feature="architectures",
    level="extended",
    model="tiny-granite-hybrid",
    shape=NO_PREFIX_CACHE,
    variant="hybrid-ssm",
)
def test_a_prefix_that_another_request_left(case: Case) -> None:
    """With Mamba2 layers, a prompt whose first blocks another request had gets its own answer.

    Blocks of attention may be taken from another request, a state may not (LMCache#4247).
    """
    shared = 2 * case.block

    def body(variant: int, rest: int = case.block // 2) -> Body:
        prefix = case.ids(shared, "prefix", variant)
        return completion([*prefix, *case.ids(rest, "rest", variant, rest)])

    case.pair.prefill_leg("completions", body(0, case.block + 3))
    case.prove(Ask(f"prompt of which {shared} tokens were another's before", "completions", body))


@check(
    "architecture/linear-attention",
    feature="architectures",
    level="extended",
    model="tiny-qwen3-next",
    variant="linear-attention",
)
def test_delta_nets_between_attention(case: Case) -> None:
    """Gated delta nets between attention (Qwen3-Next) transfer state and KV, with parity."""
    _prove_over_steps(case)


@check(
    "architecture/multimodal",
    feature="architectures",
    level="extended",
    model="tiny-idefics3",
    variant="multimodal",
)
def test_images(case: Case) -> None:
    """A prompt with an image transfers, and another image's KV is never taken for its own.

    Placeholder tokens are the same for every image, so KV that is looked up by token ids alone is
    another's (vllm#21611).
    """
    case.prove(Ask("chat with an image", "chat/completions", lambda v: _shown(case, v, v)))
    ask = Ask("one text, two images", "chat/completions", lambda v: _shown(case, "same", "of", v))
    expected = [case.pair.expected(ask.endpoint, ask.body(v)) for v in (0, 1)]
    expect.equal(
        expected[0].prompt_token_ids, expected[1].prompt_token_ids, "token ids of both prompts"
    )
    expect.true(
        not compare(expected[0], expected[1], case.pair.model.dtype).equal,
        "the reference should answer both images differently",
        "one answer",
    )
    for variant, wanted in enumerate(expected):
        seen = case.pair.both_legs(ask, ask.body(variant)).decode
        found = compare(wanted, seen, case.pair.model.dtype)
        case.saw(f"answer to image {variant + 1} against the reference's", found.describe())
        expect.true(found.equal, f"image {variant + 1} should get its own answer", found.describe())


@check(
    "architecture/encoder-decoder",
    feature="architectures",
    level="extended",
    model="tiny-whisper",
    shape=ALONE,
    variant="encoder-decoder",
)
def test_an_encoder_of_its_own(case: Case) -> None:
    """A model with an encoder of its own (Whisper) is refused at start, in clear words.

    vLLM 0.32.0 has no connectors for such models. Should that change, a transfer is to be proven.
    """
    problem = case.start()
    if problem is None:
        raise NotHere("it starts with a connector, and the suite has no recording to prove it with")
    case.saw("the server's end", str(problem))
    raise of_connector(problem, case.cell)


def _prove_over_blocks(case: Case) -> None:
    """Some blocks and a rest: borders of blocks and of steps have rows of their own (length/*)."""
    for length in (2 * case.block + 5, 3 * case.block + case.block // 2):
        case.prove(_completion(case, length))


def _prove_over_steps(case: Case) -> None:
    """As above, and one token beyond blocks and a prompt of two steps, where a state goes on."""
    _prove_over_blocks(case)
    beyond = (case.pair.token_budget or 4 * case.block) + case.block + 5
    for length in (2 * case.block + 1, beyond):
        case.prove(_completion(case, length))


def _prove_around_the_window(case: Case) -> None:
    """Within it, one token beyond, and so far beyond that whole blocks are given back."""
    far = 3 * max(WINDOW, case.block) + 5
    for length in (WINDOW - 5, WINDOW + 1, far):
        case.prove(_completion(case, length))


def _completion(case: Case, length: int) -> Ask:
    return Ask(
        f"completion of {length} tokens",
        "completions",
        lambda variant: completion(case.ids(length, length, variant)),
    )


def _shown(case: Case, text: object, *image: object) -> Body:
    """A chat about a picture, long enough for some blocks."""
    url = picture(IMAGE_SIDE, case.pair.prompts.seed, case.cell.id, *image)
    content = [
        {"type": "image_url", "image_url": {"url": url}},
        {"type": "text", "text": case.text(case.block, text)},
    ]
    messages = [{"role": "user", "content": content}]
    return greedy(messages=messages, max_tokens=12, logprobs=True, top_logprobs=2)
