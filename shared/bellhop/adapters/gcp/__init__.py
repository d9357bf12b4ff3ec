"""Bellhop on Google Cloud: Firestore, Pub/Sub, Cloud Storage and Secret Manager.

The only folder that knows Google's libraries, and what their errors mean; only `runtime.gcp`
imports it. Nothing is made at import: a client is made by the first call that needs it, so that a
process that was forked, or restored from a snapshot, has its own.
"""
