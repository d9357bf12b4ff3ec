"""Diagnosis: failures, status, doctor, explain, and rendering without an installation.

`worker_status`, `cluster_status`, `source_status`, `profile_status` and `declaration_status` each
make the conditions of one subject; `failures`, `status`, `doctor` and `explain` read them.
It reads records and may read a cluster; it changes nothing, prints nothing and never shows the
content of a Secret. `cli` and `runtime` import it; it imports everything below.
"""
