"""How tools become known: files, toolsets, definitions."""
