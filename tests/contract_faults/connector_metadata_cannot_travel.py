import threading
from typing import Any

from contract_faults.right_connector import RightConnector


class ConnectorMetadataCannotTravel(RightConnector):
    def build_connector_meta(self, scheduler_output: Any) -> Any:
        jobs = super().build_connector_meta(scheduler_output)
        jobs.done = threading.Lock()
        return jobs
