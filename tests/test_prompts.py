"""Prompts: exact, repeatable, and different from the first token on."""

from __future__ import annotations

import re
from typing import cast

import pytest

from conformance.client import Client
from conformance.prompts import NONCE_TOKENS, Prompts

# A replayed cell has to send the very prompt that failed, whatever process makes it.
GOLDEN = [259, 97, 230, 137, 355, 525, 136, 137, 138, 139]


class Words:
    """In the place of a client: every word of the passage is a token."""

    calls = 0

    def tokenize(self, text: str) -> list[int]:
        self.calls += 1
        known: dict[str, int] = {}
        return [known.setdefault(word, 100 + len(known)) for word in text.split()]


def prompts(seed: int = 0, words: Words | None = None) -> Prompts:
    return Prompts(cast(Client, words or Words()), seed)


def test_a_prompt_depends_on_seed_and_key_alone() -> None:
    one, other = prompts(), prompts()
    other.tokens(500, "something", "before")
    assert one.tokens(40, "length", 1) == other.tokens(40, "length", 1)


def test_a_prompt_is_the_same_in_every_process() -> None:
    made = prompts()
    made._pool = list(range(1000))
    assert made.tokens(10, "replayed", 1) == GOLDEN


@pytest.mark.parametrize("length", [0, 1, 2, 5, 6, 7, 16, 17, 33, 700])
def test_lengths_are_exact(length: int) -> None:
    made = prompts()
    assert len(made.tokens(length, "length")) == length
    assert set(made.tokens(length, "length")) <= set(made._pool)


def test_keys_and_seeds_make_prompts_that_differ_in_the_first_tokens() -> None:
    keys: list[tuple[object, ...]] = [(), ("a",), ("a", 0), ("a", 1), ("b", 0), ("a", "1"), ("a1",)]
    starts = {
        tuple(prompts(seed).tokens(48, *key)[:NONCE_TOKENS]) for key in keys for seed in (0, 1)
    }
    assert len(starts) == 2 * len(keys)


def test_the_first_block_is_not_a_slice_of_the_passage() -> None:
    made = prompts()
    pool = " ".join(map(str, made._pool))
    heads = [made.tokens(NONCE_TOKENS, "head", number) for number in range(20)]
    assert not any(" ".join(map(str, head)) in pool for head in heads)


@pytest.mark.parametrize("length", [2, 3, 6, 7, 16, 40])
@pytest.mark.parametrize("key", ["donor", "other"])
def test_a_sibling_ends_alike_and_begins_otherwise(length: int, key: str) -> None:
    made = prompts()
    prompt = made.tokens(length, "length", length)
    sibling = made.sibling(prompt, "length", length, key)
    assert len(sibling) == length
    assert sibling[-1] == prompt[-1]
    assert sibling[0] != prompt[0]
    assert sibling == made.sibling(prompt, "length", length, key)


def test_a_sibling_made_with_the_prompts_own_key_still_begins_otherwise() -> None:
    made = prompts()
    prompt = made.tokens(17, "same")
    assert made.tokens(16, "same")[0] == prompt[0]
    assert made.sibling(prompt, "same")[0] != prompt[0]


def test_a_prompt_of_one_token_has_only_itself_for_a_sibling() -> None:
    assert prompts().sibling([7], "donor") == [7]


@pytest.mark.parametrize("words", [0, 1, 16, 200])
def test_text_has_at_least_the_words_asked_for(words: int) -> None:
    text = prompts().text(words, "chat")
    assert len(text.split()) >= words
    assert text == prompts().text(words, "chat")
    assert re.match(r"Record \d+ of ledger \d+\.", text)
    assert "\n" not in text


def test_texts_begin_differently() -> None:
    starts = {prompts().text(30, "chat", number).split(". ")[0] for number in range(20)}
    assert len(starts) == 20


def test_the_passage_is_tokenized_once() -> None:
    words = Words()
    made = prompts(words=words)
    made.sibling(made.tokens(20), "a")
    made.tokens(30)
    assert words.calls == 1
