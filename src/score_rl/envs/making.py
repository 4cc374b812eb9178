"""Environments by name."""

from score_rl.envs.interface import PHYSICS, Environment
from score_rl.envs.tasks import TASKS, step_limit, task_of
from score_rl.errors import unknown_name


def is_module_named(name: str) -> bool:
    """Whether this is a Gymnasium id with the module that knows it, "module:Id-v0": any process can make it.

    Such environments are suites of their own. One takes seconds to make and a hundred MB, so few are made.
    """
    return ":" in name and task_of(name) is None


def make_environment(name: str, slots: int, *, physics: str = "d4rl", threads: int | None = None) -> Environment:
    """The environment of this name with room for `slots` episodes at once.

    "hopper", "halfcheetah" and "walker2d", or data set names of theirs, are stepped by MuJoCo. It uses `threads`
    threads, or else the cores that this process may use; `physics` is "d4rl" or "stock". Any other name is a Gymnasium
    id, with or without the module that knows it.
    """
    if physics not in PHYSICS:
        raise unknown_name("physics", physics, PHYSICS)
    task = task_of(name)
    if task is not None:
        from score_rl.envs.locomotion import Locomotion

        return Locomotion(TASKS[task], slots, physics=physics, threads=threads)
    from score_rl.envs.gymnasium_slots import GymnasiumSlots

    return GymnasiumSlots(name, slots)


def episode_limit(name: str | None) -> int | None:
    """After how many steps an episode is cut in this environment, as far as that is known without making it."""
    if name is None or step_limit(name) is not None or is_module_named(name):
        return step_limit(name)
    import gymnasium

    registered = gymnasium.registry.get(name)
    return None if registered is None else registered.max_episode_steps
