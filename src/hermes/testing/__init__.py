"""Public parts for tests: scripted models, fakes of the seams."""
