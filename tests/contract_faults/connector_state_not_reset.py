from contract_faults.right_connector import RightConnector


class ConnectorStateNotReset(RightConnector):
    """Every step loads again what an earlier one has loaded."""

    def forget(self) -> None:
        return None
