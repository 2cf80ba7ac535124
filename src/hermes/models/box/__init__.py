"""The model in the box: a small one that runs on this machine's CPU, without a key and without a network."""
