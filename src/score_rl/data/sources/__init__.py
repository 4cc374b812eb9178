"""One reader a file: where data sets come from."""
