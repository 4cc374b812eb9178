"""How the training on clusters behaves: overhead, several devices, and a simulation of a large one."""
