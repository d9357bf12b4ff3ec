"""Helm charts from what users wrote to what a cluster is to have; nothing here runs Helm.

`declared` makes contents of charts, `logins` reads Secrets of repositories, and `placing` says what
a release is to be in one cluster.
"""
