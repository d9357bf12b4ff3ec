"""Helm charts: releases in clusters, by Helm itself.

`desired` renders the releases, `planning` decides the operations, `executor` carries them out.
`release_objects` knows the objects of a release, and `ownership` who owns them.
"""
