"""Names of the faults of constrained answers, tool calls and reasoning."""

from __future__ import annotations

KNOWN = {
    "free": "no answer is held to its grammar",
    "late_grammar": "a grammar is in the state after its first token when an answer begins",
    "mixes_grammars": "requests are held to the grammar of the one that came before",
    "parses_part": "a tool call that ends in its middle is HTTP 500",
    "raw_calls": "tool calls are left in the text",
    "calls_unasked": "tool calls are parsed whatever the request says",
    "all_calls": "parallel_tool_calls is ignored",
    "loses_call": "the first of the tool calls is not told",
    "loses_text": "text begins with its second letter where tools were sent",
    "loses_delta": "the last piece of a streamed call's arguments is not sent",
    "names_again": "every piece of a streamed call has an id of its own",
    "wrong_arguments": "arguments of tool calls disobey their schema",
    "raw_thoughts": "reasoning is left in the text",
    "loses_thoughts": "reasoning is not told",
    "eager_grammar": "a grammar begins with the first token, so nothing is reasoned before it",
    "thinks_anyway": "enable_thinking is ignored",
}
