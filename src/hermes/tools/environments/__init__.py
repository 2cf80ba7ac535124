"""Where commands run: one class per backend, all behind the `Environment` seam and one conformance suite."""
