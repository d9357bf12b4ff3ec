"""Views: each kind as a table, manifests and descriptions; they only read records."""
