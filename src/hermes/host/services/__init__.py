"""What runs beside the sessions of a server, a file each."""
