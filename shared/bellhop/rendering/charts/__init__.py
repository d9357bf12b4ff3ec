"""Helm charts from what users wrote to the releases of one cluster; nothing here runs Helm.

`contents` makes contents of charts, `credentials` reads Secrets of repositories, and `releases`
renders the names and values of a release for one cluster. It may touch what `rendering` may.
"""
