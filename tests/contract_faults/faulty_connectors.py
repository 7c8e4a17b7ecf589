"""One contract class for each right connector and for each wrong one, named after it."""

from __future__ import annotations

from conformance.contracts.connector import ConnectorContract

CONNECTORS = (
    "RightConnector",
    "LateConnector",
    "ConnectorTakesTwoArguments",
    "ConnectorLeavesAbstract",
    "ConnectorRefusesCaches",
    "ConnectorNegativeMatch",
    "ConnectorClaimsWholePrompt",
    "ConnectorClaimsUnknownPrompts",
    "ConnectorZeroIsAsynchronous",
    "ConnectorAskingStartsALoad",
    "ConnectorMutatesSchedulerOutput",
    "ConnectorStateNotReset",
    "ConnectorMetadataCannotTravel",
    "ConnectorDropsALayer",
    "ConnectorShiftsByOneToken",
    "ConnectorSavesFirstStep",
    "ConnectorWritesForeignBlocks",
    "ConnectorSwallowsLoadErrors",
    "ConnectorLoadsWhereItDid",
    "ConnectorNeverReportsRelease",
    "ConnectorShutdownOnlyOnce",
)


def module_of(name: str) -> str:
    snake = "".join(f"_{c.lower()}" if c.isupper() else c for c in name).lstrip("_")
    return f"contract_faults.{snake}"


def of_connector(name: str) -> type[ConnectorContract]:
    attributes = {
        "connector": name,
        "module_path": module_of(name),
        "extra_config": {"folder": "${dir:store}"},
        "store": "store",
        "patience_s": 3.0,
    }
    return type(f"Test{name}", (ConnectorContract,), attributes)


for connector in CONNECTORS:
    globals()[f"Test{connector}"] = of_connector(connector)
del connector
