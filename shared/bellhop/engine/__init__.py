"""Decisions: pure and deterministic functions from what is known to what is to be done.

No I/O, no clock, no randomness belong here.
"""
