"""Helm 4's own command line, run as a boxed subprocess: the only folder that runs it."""
