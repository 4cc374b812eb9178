"""The choice among methods and settings, made from recorded data alone; docs/selecting.md says by which rules."""
