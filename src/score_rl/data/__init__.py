"""Recorded data: one type, its checks, and one reader per source."""
