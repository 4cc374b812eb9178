"""Where data sets come from: one reader a file.

To add a reader, write one file here that ends with `READER = Reader(...)`, and one line in `registry.py`.
"""
