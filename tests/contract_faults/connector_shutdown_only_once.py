from contract_faults.right_connector import RightConnector


class ConnectorShutdownOnlyOnce(RightConnector):
    def shutdown(self) -> None:
        del self.folder
