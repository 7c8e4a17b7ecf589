"""A connector with one fault, to see a certificate refused: the last block is never loaded.

The counters are perfect, since the scheduler was told of all blocks; the answer is wrong.
"""

from __future__ import annotations

from typing import Any

from kvc_block_store.connector import BlockStoreConnector


class DropsLastBlockConnector(BlockStoreConnector):
    """As the right one, but of each step's loads the last is left out."""

    def start_load_kv(self, forward_context: Any, **kwargs: Any) -> None:
        """Loads all but the last block."""
        del self._moves().loads[-1:]
        super().start_load_kv(forward_context, **kwargs)
