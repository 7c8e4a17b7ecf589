from contract_faults.right_connector import RightConnector


class ConnectorClaimsWholePrompt(RightConnector):
    """Forgets that decode has to compute the last token of a prompt of whole blocks."""

    def usable(self, length: int) -> int:
        return length // self.block * self.block
