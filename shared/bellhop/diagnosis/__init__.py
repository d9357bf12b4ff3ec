"""Diagnosis: failures, status, doctor, explain, and rendering without an installation.

It reads records and may read a cluster; it changes nothing, prints nothing and never shows the
content of a Secret. `cli` and `runtime` import it; it imports everything below.
"""
