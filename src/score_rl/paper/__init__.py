"""What exists to reproduce one paper: its experiments, its theory. Nothing else imports it."""
