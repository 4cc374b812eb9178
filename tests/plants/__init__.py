"""Simulated plants of our own: they write logs as a user has them, and know what any policy is truly worth."""
