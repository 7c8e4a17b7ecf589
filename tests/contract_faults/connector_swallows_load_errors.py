from contract_faults.right_connector import RightConnector


class ConnectorSwallowsLoadErrors(RightConnector):
    def get_block_ids_with_load_errors(self) -> set[int]:
        return set()
