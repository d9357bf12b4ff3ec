"""Helm and kubectl as programs: where they are found, how they are downloaded, and their box.

Adapters and `runtime` import it.
"""
