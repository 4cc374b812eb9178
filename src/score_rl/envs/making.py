"""Environments by name."""

from score_rl.envs.interface import PHYSICS, Environment
from score_rl.envs.tasks import TASKS, task_of
from score_rl.errors import unknown_name


def make_environment(name: str, slots: int, *, physics: str = "d4rl", threads: int | None = None) -> Environment:
    """The environment of this name with room for `slots` episodes at once.

    "hopper", "halfcheetah" and "walker2d", or data set names of theirs, are stepped by MuJoCo. It uses `threads`
    threads, or else the cores that this process may use; `physics` is "d4rl" or "stock". Any other name is a Gymnasium
    id.
    """
    if physics not in PHYSICS:
        raise unknown_name("physics", physics, PHYSICS)
    task = task_of(name)
    if task is not None:
        from score_rl.envs.locomotion import Locomotion

        return Locomotion(TASKS[task], slots, physics=physics, threads=threads)
    from score_rl.envs.gymnasium_slots import GymnasiumSlots

    return GymnasiumSlots(name, slots)
