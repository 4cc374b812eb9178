"""The folder of an experiment: records, metrics, checkpoints, locks."""
