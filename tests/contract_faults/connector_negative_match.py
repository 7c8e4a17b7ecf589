from typing import Any

from contract_faults.right_connector import RightConnector


class ConnectorNegativeMatch(RightConnector):
    """Subtracts what decode has computed even where nothing is left to match."""

    def get_num_new_matched_tokens(self, request: Any, num_computed_tokens: int) -> Any:
        matched, asynchronous = super().get_num_new_matched_tokens(request, num_computed_tokens)
        return matched or -num_computed_tokens, asynchronous
