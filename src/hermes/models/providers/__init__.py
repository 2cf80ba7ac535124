"""Who serves a model: names, addresses, keys, windows and prices."""
