"""The demo: Bellhop doing its job between two real Kubernetes clusters on one machine.

The stand that runs the processes serves the flow tests too; nothing of the product may need it.
"""
