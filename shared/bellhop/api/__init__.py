"""Kinds that users write: a pydantic model for each, whose field is its only declaration.

No I/O, no record and no decision belong here: only fields, defaults and refusals. Every package
above may import it, but `ingest` and what starts functions, which must not load pydantic. It
imports `state` for values that records share, `documents` and `core`.
"""
