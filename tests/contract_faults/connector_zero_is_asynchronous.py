from typing import Any

from contract_faults.right_connector import RightConnector


class ConnectorZeroIsAsynchronous(RightConnector):
    """Announces an asynchronous load of no token for prompts that decode knows completely."""

    def get_num_new_matched_tokens(self, request: Any, num_computed_tokens: int) -> Any:
        matched, _ = super().get_num_new_matched_tokens(request, num_computed_tokens)
        return matched, num_computed_tokens > 0 and not matched
