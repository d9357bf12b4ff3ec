"""The functions templates can call, one module a subject; each is loaded when first asked for."""
