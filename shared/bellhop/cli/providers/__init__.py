"""Providers: the way of a command into the installations of each kind."""
