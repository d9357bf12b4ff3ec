"""The entry points in the clouds, a folder a stage: wiring alone."""
