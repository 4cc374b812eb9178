"""A trained policy as one file that acts without JAX and without this package."""
