"""The world behind the ports, a folder for each technology; the folders do not import each other.

`egress` and `programs` are below the others: the guarded HTTP client and the box of programs.
Features do not import adapters; `runtime`, `registration`, `diagnosis`, `operations`, `cli` and
`forwarder` do. They import `ports` and what is below.
"""
