"""What clients can ask for, a file for each kind."""
