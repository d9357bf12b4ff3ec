"""How each kind is listed, shown and described; reads records, changes nothing."""
