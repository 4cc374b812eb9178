"""The paper's tables and figures: each a declaration of which runs it needs and how they are shown.

scales       how large: trial, day, paper
plan         what a declaration is made of
pool         the runs, trained once and shared by all experiments that need them
curves, comparison, runtime, uncertainty_map, false_correlation    the declarations, one file for each family
drives, street_figure    the task of false_correlation, and its picture
registry     their names
execution    train what is missing, then draw, tabulate and store
"""
