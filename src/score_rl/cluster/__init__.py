"""The same training on several machines: fleets become tasks of Ray, of SLURM, or of processes on this machine.

>>> from score_rl.cluster import cluster
>>> experiment = score_rl.train("logs.hdf5", seeds=range(8), on=cluster("ray"))

orders.py     what a machine is asked to do, as JSON
work.py       doing it: a fleet in its own attempt, with our own training and resume
data.py       data sets, once to every machine
engines.py    what starts tasks: the interface; `ray_engine`, `slurm_engine` and `process_engine` are its forms
ray_node.py   what runs on a node of Ray
driver.py     which task is next, which is tried again, what is gathered
machines.py   all of it as a place to train, for `score_rl.train(on=...)`
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from score_rl.cluster.machines import cluster

__all__ = ["cluster"]


def __getattr__(name: str) -> Any:
    """Import on first use: neither Ray nor submitit is touched before."""
    if name != "cluster":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from score_rl.cluster.machines import cluster

    return cluster
