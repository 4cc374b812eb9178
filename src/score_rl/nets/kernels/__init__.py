"""The fast forms of networks, for GPUs and for CPUs that multiply bfloat16."""
