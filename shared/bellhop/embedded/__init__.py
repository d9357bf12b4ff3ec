"""The embedded mode: adapters, stages, schedule and the HTTP function on one machine.

It composes what the rooms below it hold, as functions do for a cloud; it decides nothing.
"""
