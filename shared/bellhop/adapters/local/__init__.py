"""Bellhop on one machine: store, queue, secrets and blobs on a disk, the server, and certificates.

Complete products that pass the contract suite of the clouds' adapters; they are the tests'
fakes too. `runtime`, `registration`, `diagnosis`, `operations`, `cli` and `forwarder` import it.
"""
