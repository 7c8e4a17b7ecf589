"""A KV connector that keeps prompt blocks as files, found by a hash of the prompt up to them."""

from pathlib import Path

PROFILE = Path(__file__).parent / "profile.yaml"
BROKEN_PROFILE = Path(__file__).parent / "broken.yaml"
