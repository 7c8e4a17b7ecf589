from typing import Any

from contract_faults.right_connector import Job, RightConnector


class ConnectorAskingStartsALoad(RightConnector):
    """Takes the scheduler's question for its decision."""

    def get_num_new_matched_tokens(self, request: Any, num_computed_tokens: int) -> Any:
        answer = super().get_num_new_matched_tokens(request, num_computed_tokens)
        if answer[0]:
            self.loads[request.request_id] = Job(request.request_id, "asked", [], 0, 0)
        return answer
