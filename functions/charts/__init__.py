"""The entry points of the deploy stage's half that runs Helm and kubectl."""
