"""Bellhop on AWS: the store on DynamoDB, blobs in S3, secrets in Secrets Manager, EKS by STS.

The only folder that knows AWS' SDK. Nothing is made at import: a client is made by the first call
that needs it, so that a process that was forked, or restored from a snapshot, has its own.
"""
