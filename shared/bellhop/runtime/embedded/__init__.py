"""The embedded mode: adapters, features, schedule and the HTTP server on one machine.

It composes as functions do in a cloud, and decides nothing.
"""
