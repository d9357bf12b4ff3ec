"""The composition on Google Cloud: `cloud` with Google's adapters and the shapes of its events.

A function names its stage; what it works with is put together here by its first event. Nothing is
made at import, nor before gunicorn forks: clients of gRPC do not survive it. No decisions belong
here, and no words of Google's libraries.
"""
