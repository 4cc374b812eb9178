"""One file per algorithm; `registry` finds them by name."""
