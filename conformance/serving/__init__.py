"""Real vLLM servers as child processes: ports, start, readiness, stop."""
