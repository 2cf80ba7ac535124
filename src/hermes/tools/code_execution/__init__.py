"""Scripts that call tools: what a script is given, how it is run, and how its calls are answered."""
