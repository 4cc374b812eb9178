"""Policies in simulators: episodes, and the processes that play them."""
