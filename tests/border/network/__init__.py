"""Ways out by the network and everyday work with it, in a room whose wires are watched."""
