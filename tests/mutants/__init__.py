"""Mutants: small breakages of stages and records that histories and contracts must notice."""
