"""Makes ``pytest conformance --connector nixl`` a conformance run."""

pytest_plugins = ["conformance.plugin"]
