"""Images, packages, releases and generated pages, apart from the functions themselves.

`infra.lab` is a real Kubernetes control plane on one machine, for the demo and the tests.
Stand-ins of clouds, which only tests and benchmarks use, are in `tests/lab`.
"""
