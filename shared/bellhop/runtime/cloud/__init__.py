"""Composition that all clouds share; it knows no name of a cloud.

`bellhop.runtime.aws` and `bellhop.runtime.gcp` complete it with their adapters and the shapes of
their events. Nothing is made at import, and no decision belongs here.
"""
