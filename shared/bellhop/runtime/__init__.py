"""Composition: adapters and features put together for one machine, for AWS and for Google Cloud.

No decision of a feature belongs here. `cli` and `functions` import it; it imports everything below.
`cloud` is below `aws` and `gcp`, and neither of these imports the other.
"""
