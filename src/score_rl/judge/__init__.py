"""Policies judged from recorded data alone, without a simulator; docs/judging.md says by which rules."""
