"""Contracts: pytest classes that a connector's author subclasses and runs in seconds.

``connector.ConnectorContract`` for vLLM's ``KVConnectorBase_V1``; ``lookup_buffer`` and ``pipe``
for the two older shapes. They run in the engine's own Python and need nothing of the suite but
this package, with pytest, torch and vLLM beside it.
"""
