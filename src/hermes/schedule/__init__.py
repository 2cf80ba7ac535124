"""The schedule: what its words mean, when a job is due, and what becomes of each due moment. Knows no agent."""
