"""Classifiers: labels that a cluster gets and loses by what runs in it."""
