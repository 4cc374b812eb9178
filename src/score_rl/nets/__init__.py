"""Networks and what moves their parameters. Nothing here knows of an algorithm."""
