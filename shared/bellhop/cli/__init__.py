"""The `bellhop` command: commands, options, tables, exit codes, contexts, and files of users.

A command is a file in `commands`; its tables are in `views`, its providers' options in `providers`.
Facts about an installation are computed in `diagnosis`, changes of one in `operations` and
`registration`: none of it belongs here. It imports everything below; only `functions` stands above.
Help and completion load no models: a command imports its own when it runs.
"""
