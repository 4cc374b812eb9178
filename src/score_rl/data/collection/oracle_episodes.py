"""One episode of OGBench's manipulation data, recorded with the oracles that OGBench's package carries.

The published data come from the same oracles with the same settings. Here each episode has random numbers of its own,
so that episodes can be recorded in any order, and by any number of processes.

- *play*: an oracle follows a plan made beforehand, with smooth noise on it.
- *noisy*: an oracle looks at the state in every step. Its actions carry noise, and some are drawn at random.
"""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from score_rl.errors import InputError

PLAN_NOISE = {"noise": 0.1, "noise_smoothing": 0.5}  # of play data
MOST_NOISE = 0.1  # of noisy data; each episode draws its own level up to this
NOISE_SCALE = np.array([1.0, 1.0, 1.0, 3.0, 10.0])  # of that noise, by dimension of the action
LEAST_NORM = 0.4  # of an action of the oracles that look at the state
STACKING = {"single": (0.0, 0.0), "double": (0.0, 0.25), "triple": (0.05, 0.35), "quadruple": (0.1, 0.5)}
OTHER_STACKING = 0.5  # of scenes and puzzles
CUBE = slice(14, 17)  # a scene's cube within qpos: x, y, z
TOO_FAR_RIGHT, TOO_FAR_LEFT, DRAWER_HEIGHTS = 0.29, -0.3, (0.06, 0.08)  # y and z where a camera misses the cube

COLUMNS = {  # as the published files store them
    "observations": np.float32,
    "actions": np.float32,
    "terminals": np.bool_,
    "qpos": np.float32,
    "qvel": np.float32,
    "button_states": np.int64,
}
Rows = dict[str, np.ndarray]


@dataclass(frozen=True)
class OracleTask:
    """What is recorded: an environment, and how its oracles behave."""

    environment: str  # such as cube-single
    kind: str  # play or noisy; of a maze navigate or stitch
    steps: int  # rows of an episode
    random_actions: float  # share of the actions that are drawn at random


class OracleEpisodes:
    """Records episodes of a task, each from its number alone."""

    def __init__(self, task: OracleTask, seed: int) -> None:
        self._task, self._seed = task, seed
        self._environment = make_for_recording(task)
        self._oracles = make_oracles(task, self._environment)

    def record(self, number: int) -> Rows:
        """The rows of an episode. A scene whose cube got out of sight is recorded anew, as in the published data."""
        attempt = 0
        while True:
            rows = self._attempt((self._seed, number, attempt))
            if self._task.environment != "scene" or cube_stays_visible(rows["qpos"]):
                return rows
            attempt += 1

    def _attempt(self, numbers: tuple[int, int, int]) -> Rows:
        draws = seeded(numbers)
        observation, info = self._environment.reset(seed=int(draws.integers(2**31)))
        stacking = draws.uniform(*_stacking_range(self._task.environment))
        noise = draws.uniform(0, MOST_NOISE) if self._task.kind == "noisy" else None
        oracle = self._oracles[info["privileged/target_task"]]
        oracle.reset(observation, info)
        recorded: dict[str, list[Any]] = {name: [] for name in COLUMNS}
        ended = False
        while not ended:
            action = self._action(oracle, observation, info, noise, draws)
            following, _, terminated, truncated, info = self._environment.step(action)
            ended = terminated or truncated
            if oracle.done:
                seen, told = self._environment.unwrapped.set_new_target(p_stack=stacking)
                oracle = self._oracles[told["privileged/target_task"]]
                oracle.reset(seen, told)
            row = (observation, action, ended, info["prev_qpos"], info["prev_qvel"], info.get("prev_button_states"))
            for column, value in zip(recorded.values(), row, strict=True):
                column.append(value)
            observation = following
        return {name: np.array(column, COLUMNS[name]) for name, column in recorded.items() if column[0] is not None}

    def _action(
        self, oracle: Any, observation: np.ndarray, info: Any, noise: float | None, draws: np.random.Generator
    ) -> np.ndarray:
        if draws.random() < self._task.random_actions:
            return draws.uniform(-1, 1, len(NOISE_SCALE))
        action = np.array(oracle.select_action(observation, info))
        if noise is not None:
            action = action + draws.normal(0, noise * NOISE_SCALE)
        return np.clip(action, -1, 1)


def make_for_recording(task: OracleTask) -> Any:
    """The environment in which the oracles act: it goes on when a target is reached."""
    about = {"terminate_at_goal": False, "max_episode_steps": task.steps}
    mode = {} if task.environment.startswith("pointmaze") else {"mode": "data_collection"}
    return make_quietly(f"{task.environment}-v0", **about, **mode)


def make_oracles(task: OracleTask, environment: Any) -> dict[str, Any]:
    """The oracle for each kind of target that the environment sets."""
    from ogbench.manipspace.oracles.markov import button_markov, cube_markov, drawer_markov, window_markov
    from ogbench.manipspace.oracles.plan import button_plan, cube_plan, drawer_plan, window_plan

    plans = task.kind == "play"
    about = {"env": environment} | (PLAN_NOISE if plans else {"min_norm": LEAST_NORM})
    if task.environment.startswith("puzzle"):
        button = button_plan.ButtonPlanOracle if plans else button_markov.ButtonMarkovOracle
        return {"button": button(gripper_always_closed=True, **about)}
    found = {"cube": cube_plan.CubePlanOracle(**about) if plans else cube_markov.CubeMarkovOracle(**about)}
    if task.environment == "scene":
        found["button"] = (button_plan.ButtonPlanOracle if plans else button_markov.ButtonMarkovOracle)(**about)
        found["drawer"] = (drawer_plan.DrawerPlanOracle if plans else drawer_markov.DrawerMarkovOracle)(**about)
        found["window"] = (window_plan.WindowPlanOracle if plans else window_markov.WindowMarkovOracle)(**about)
    return found


def make_quietly(gymnasium_id: str, **about: Any) -> Any:
    """An environment of OGBench's, without its warnings about rounded bounds."""
    import_ogbench()
    import gymnasium

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return gymnasium.make(gymnasium_id, **about)


def import_ogbench() -> None:
    """Import the package, which gives its environments their names."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a machine without a screen: nothing is drawn
        try:
            import ogbench  # noqa: F401
        except ImportError as error:
            raise InputError(
                f"OGBench's data need its package, which cannot be imported ({error}): with Python 3.11 or 3.12, "
                "pip install 'score-rl[ogbench]'."
            ) from error


def cube_stays_visible(qpos: np.ndarray) -> bool:
    """Whether a scene's cube stays in sight unless it lies in the drawer."""
    _, y, z = qpos[:, CUBE].T
    outside_drawer = (z < DRAWER_HEIGHTS[0]) | (z > DRAWER_HEIGHTS[1])
    return not ((y >= TOO_FAR_RIGHT) | ((y <= TOO_FAR_LEFT) & outside_drawer)).any()


def _stacking_range(environment: str) -> tuple[float, float]:
    """From where the probability that a cube is put on another is drawn."""
    family, _, size = environment.partition("-")
    return STACKING[size] if family == "cube" else (OTHER_STACKING, OTHER_STACKING)


def seeded(numbers: tuple[int, int, int]) -> np.random.Generator:
    """A generator from these numbers. The oracles draw from NumPy's global one, which is seeded alike."""
    own, oracles = np.random.SeedSequence(numbers).spawn(2)
    np.random.seed(oracles.generate_state(4))  # noqa: NPY002  # it is the package's own generator
    return np.random.default_rng(own)
