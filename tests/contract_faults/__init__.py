"""Implementations that are wrong in exactly one way, named after it, and the right ones they spoil.

Each contract must stay green on the right one and go red on the clause that names the fault.
"""
