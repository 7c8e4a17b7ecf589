"""``python -m vllm.entrypoints.openai.api_server``, as the launcher runs it."""

from conformance.scripted.server import main

if __name__ == "__main__":
    main()
