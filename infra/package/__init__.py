"""The zips of the functions, one for each stage and architecture: the same bytes each time."""
