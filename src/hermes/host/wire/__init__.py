"""The protocol between `hermes serve` and its clients: frames, the socket of a home, the client's end."""
