"""`gateway`: only its submodules, so that a platform's plugin loads; nothing uses it yet."""
