"""A training from request to end."""
