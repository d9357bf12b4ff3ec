"""Use cases: what a CLI, a console and cloud functions call alike.

Nothing here prints or knows where an installation runs; an `Installation` is handed in.
"""
