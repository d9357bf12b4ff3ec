"""The `bellhop` command, its output, and the composition root of the embedded mode."""
