"""Bellhop on AWS: store (DynamoDB), queue (SQS), blobs (S3), secrets, EKS by STS.

The only folder that knows AWS' SDK, and what its errors mean; only `runtime.aws` imports it.
Nothing is made at import: a client is made by the first call that needs it, so that a process that
was forked, or restored from a snapshot, has its own.
"""
