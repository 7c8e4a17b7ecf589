from abc import abstractmethod

from contract_faults.right_connector import RightConnector


class ConnectorLeavesAbstract(RightConnector):
    @abstractmethod
    def wait_for_save(self) -> None: ...
