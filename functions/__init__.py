"""Entry points of the clouds: a folder for each stage, with wiring only."""
