"""The unit of work: all runs of one algorithm with equal shapes, trained as one compiled program."""
