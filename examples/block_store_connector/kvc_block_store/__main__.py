"""``python -m kvc_block_store [broken]`` prints the path of a profile, for ``--profile``."""

import sys

from kvc_block_store import BROKEN_PROFILE, PROFILE

print(BROKEN_PROFILE if sys.argv[1:] == ["broken"] else PROFILE)
