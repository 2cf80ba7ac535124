"""The one package that starts processes. Every child has an owner here until it is gone."""
