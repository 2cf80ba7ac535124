"""From a call's words to its handler: arguments, order, threads, loops."""
