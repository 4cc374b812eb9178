"""Runs that the documents show: which are wanted, how they are trained, and how their results are stored.

    python -m benchmarks.training.methods         train methods on the paper's data sets
    python -m benchmarks.training.grid            choose SCORE's settings for each data set
    python -m benchmarks.training.independent     train d3rlpy's TD3+BC on data of this project

`wanted.csv` lists the results that the comparison is to hold. `score_rl.paper.evidence.wanted` compares it with what is
stored in `benchmarks/results`.
"""
