"""The documentation as a site, which `make site` builds with Sphinx."""
