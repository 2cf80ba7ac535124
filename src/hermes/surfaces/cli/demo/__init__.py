"""The demo: a recorded model works on a small project; everything else is real."""
