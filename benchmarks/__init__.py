"""What is measured and trained with the package, and not part of it: speeds, and the runs that documents show."""
