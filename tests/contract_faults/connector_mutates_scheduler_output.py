from typing import Any

from contract_faults.right_connector import RightConnector


class ConnectorMutatesSchedulerOutput(RightConnector):
    def build_connector_meta(self, scheduler_output: Any) -> Any:
        scheduler_output.preempted_req_ids = {
            new.req_id for new in scheduler_output.scheduled_new_reqs
        }
        return super().build_connector_meta(scheduler_output)
