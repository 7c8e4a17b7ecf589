"""A scripted vLLM: the suite end to end, without an engine, in seconds.

It speaks the parts of the OpenAI API that the suite uses, keeps a toy KV cache that really is
handed from prefill to decode, and breaks in one named way when asked to (``FAKE_VLLM_FAULT``).
The standard library is all that the server side needs.
"""
