"""What the suite takes for granted of vLLM, as tests of their own that run first.

A release of vLLM that renames a counter or changes the form of an answer fails here, by name, and
not in forty cells that blame a connector. An assumption is what the suite needs to be able to
judge; what a check requires of a pair is none.

``assumption.py`` registers them, ``plain.py`` is the server without a connector that they are
tried on, ``trial.py`` tries them; every other file is an area. docs/assumptions.md lists them.
"""
