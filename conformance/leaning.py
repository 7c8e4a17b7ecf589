"""Makes a model with random weights come to the end of JSON, or not too soon.

Inside structural tags vLLM 0.32.0 lets a model put any whitespace between JSON tokens, whatever
``disable_any_whitespace`` says (``v1/structured_output/backend_xgrammar.py``), and tool calls are
such tags: a model with random weights never stops at whitespace.
"""

from __future__ import annotations

from conformance.client import Client

_SIGNS = '"{},:'
# The most that vLLM takes.
BIAS = 100


def towards_json(client: Client, digits: str = "") -> dict[str, int]:
    """A ``logit_bias`` for JSON's signs and some digits, all alike, so values stay the model's.

    The log-probabilities in an answer are those before the bias. Raises
    :class:`EnvironmentProblem` where the server does not tell token ids.
    """
    return {str(client.tokenize(sign)[-1]): BIAS for sign in _SIGNS + digits}


def away_from(client: Client, *texts: str) -> dict[str, int]:
    """A ``logit_bias`` against the tokens that end these texts. Raises as above."""
    return {str(client.tokenize(text)[-1]): -BIAS for text in texts}
