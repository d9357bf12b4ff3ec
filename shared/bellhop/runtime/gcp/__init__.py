"""The composition on Google Cloud: `cloud` with Google's adapters and the shapes of its events.

A function names its stage; its first event puts together what the stage works with. Nothing is
made at import, nor before gunicorn forks: clients of gRPC do not survive it. No decisions belong
here, and no words of Google's libraries.
"""
