"""From a table of logs to a recording: its columns are found, its rows sorted, its gaps named.

    file or frame --open--> Table --convert--> numbers --spool--> rows as they came --arrange--> rows in order

A table is read once, in blocks. Memory holds a few bytes of each row, for sorting, and one block.
"""
