"""One message's work each: ingest, evaluate, deploy, sweep.

Stages take ports, know nothing of each other and meet in the queue.
"""
