from contract_faults.right_connector import Job, RightConnector


class ConnectorSavesFirstStep(RightConnector):
    def complete(self, job: Job, computed: int) -> bool:
        return True
