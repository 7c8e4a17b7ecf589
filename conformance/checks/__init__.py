"""The conformance checks: what a user reads to know what conformance means."""
