"""Bellhop on one machine: store, queue, secrets and blobs on a disk, and the server.

Complete products that pass the contract suite of the clouds' adapters; they are the tests'
fakes too.
"""
