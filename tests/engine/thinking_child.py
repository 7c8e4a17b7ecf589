"""Feeds deltas to vLLM's streamed parsing of reasoning; run as a script by an engine's Python.

In: {"model": a model's folder, "plugin": a file or "", "parser": a name, "deltas": [[text, …], …]}.
Out: for each list of deltas, [reasoning, content] as a client would put them together.
"""

import json
import sys
from typing import Any

from transformers import AutoTokenizer
from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest
from vllm.parser.parser_manager import ParserManager
from vllm.reasoning import ReasoningParserManager


def main() -> None:
    """Read what is asked, answer on the last line of standard output."""
    asked = json.load(sys.stdin)
    if asked["plugin"]:
        ReasoningParserManager.import_reasoning_parser(asked["plugin"])
    tokenizer = AutoTokenizer.from_pretrained(asked["model"])
    kind = ParserManager.get_parser(reasoning_parser_name=asked["parser"])
    seen = [_streamed(kind(tokenizer), tokenizer, deltas) for deltas in asked["deltas"]]
    print(json.dumps(seen))


def _streamed(parser: Any, tokenizer: Any, deltas: list[str]) -> list[str]:
    request = ChatCompletionRequest(messages=[{"role": "user", "content": "?"}], stream=True)
    told = ["", ""]
    for number, text in enumerate(deltas, 1):
        message = parser.parse_delta(
            delta_text=text,
            delta_token_ids=tokenizer.encode(text, add_special_tokens=False),
            request=request,
            prompt_token_ids=[1],
            finished=number == len(deltas),
        )
        if message is not None:
            told[0] += message.reasoning or ""
            told[1] += message.content or ""
    return told


if __name__ == "__main__":
    main()
