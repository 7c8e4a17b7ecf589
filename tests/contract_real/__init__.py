"""vLLM's own implementations of what the contracts describe, each with what was found."""
