"""What a call gives back: its shape, its size, where large ones lie."""
