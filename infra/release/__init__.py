"""The files of a release, in `dist/release`: the same bytes for the same commit."""
