"""How a confinement is enforced: namespaces by bubblewrap, Landlock, system call filters. Linux only."""
