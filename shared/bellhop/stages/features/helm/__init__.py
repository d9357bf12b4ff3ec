"""Helm charts: releases in clusters, by Helm itself.

`wants` says which releases, `planning` what is to be done, and `executor` does it. `inside` knows
which objects a release consists of.
"""
