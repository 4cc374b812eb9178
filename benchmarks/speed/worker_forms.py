"""A worker process that plays episodes, in each of the forms that `worker_processes.py` compares.

Started as `python -m benchmarks.speed.worker_forms FORM`. All forms step the same physics by the same loop and answer
over the same pipe. They differ in what they import and in how a policy acts. Imports are inside functions, because
the time they take is part of what is measured.
"""

import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

Act = Callable[[np.ndarray], np.ndarray]  # observations [policies * episodes, S] to actions
ActMaker = Callable[[list[list[np.ndarray]]], Act]  # from the numbers of each policy


def numpy_form(facts: dict[str, Any], arrays: Sequence[np.ndarray]) -> ActMaker:
    """As the package does: the operations of a traced policy, done by NumPy."""
    from score_rl.rollout.instructions import Instructions

    instructions = Instructions.from_json(facts["instructions"], arrays)
    return lambda policies: instructions.policy(policies[0])


def by_hand_form(facts: dict[str, Any], arrays: Sequence[np.ndarray]) -> ActMaker:
    """A network written in NumPy for one kind of actor: relu, then tanh. The least that NumPy can take."""
    layers = facts["layers"]

    def make(policies: list[list[np.ndarray]]) -> Act:
        mean, scale, _, _, centre, halfwidth, *network = policies[0][-(6 + 2 * layers) :]
        weights, biases = network[:layers], network[layers:]

        def act(observations: np.ndarray) -> np.ndarray:
            values = (observations - mean) / scale
            for weight, bias in zip(weights[:-1], biases[:-1], strict=True):
                values = np.maximum(values @ weight + bias, 0)
            return centre + halfwidth * np.tanh(values @ weights[-1] + biases[-1])

        return act

    return make


def jax_form(facts: dict[str, Any], arrays: Sequence[np.ndarray]) -> ActMaker:
    """The algorithm's own function, compiled by JAX; several policies are stacked, as training does it."""
    import jax

    from score_rl.algorithms.algorithm import Shapes
    from score_rl.algorithms.registry import get_algorithm
    from score_rl.algorithms.settings import make_config
    from score_rl.data.treatment import Treatment

    algorithm = get_algorithm(facts["algorithm"])
    config = make_config(algorithm, facts["config"])
    shapes = Shapes(*facts["shapes"])
    policy = jax.eval_shape(lambda: algorithm.policy(algorithm.init(config, shapes, jax.random.key(0))))
    structure = jax.tree.structure((config, Treatment(*range(6)), policy))

    def act_of_one(config: Any, treatment: Treatment, policy: Any, observations: Any) -> Any:
        return treatment.action_out(algorithm.act(config, policy, treatment.observe(observations)))

    stacked_act = jax.jit(jax.vmap(act_of_one))

    def make(policies: list[list[np.ndarray]]) -> Act:
        leaves = [jax.device_put(np.stack(column)) for column in zip(*policies, strict=True)]
        inputs = jax.tree.unflatten(structure, leaves)

        def act(observations: np.ndarray) -> np.ndarray:
            actions = stacked_act(*inputs, observations.reshape(len(policies), -1, observations.shape[-1]))
            return np.asarray(actions).reshape(len(observations), -1)

        return act

    return make


def exported_form(facts: dict[str, Any], arrays: Sequence[np.ndarray]) -> ActMaker:
    """The traced policy as `jax.export` writes it: JAX is imported, the algorithm is not."""
    import jax
    from jax import export

    (blob,) = arrays
    call = jax.jit(export.deserialize(bytearray(blob.tobytes())).call)

    def make(policies: list[list[np.ndarray]]) -> Act:
        numbers = jax.device_put(policies[0])
        return lambda observations: np.asarray(call(numbers, observations))

    return make


FORMS: dict[str, Callable[[dict[str, Any], Sequence[np.ndarray]], ActMaker]] = {
    "numpy": numpy_form,
    "numpy by hand": by_hand_form,
    "jax": jax_form,
    "jax stacked": jax_form,
    "jax exported": exported_form,
}


def main() -> None:
    from score_rl.envs import make_environment
    from score_rl.rollout.episodes import whole_episodes
    from score_rl.rollout.messages import receive, send

    requests, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    environments: dict[tuple[str, int], Any] = {}
    make: ActMaker | None = None
    while (request := receive(requests)) is not None:
        facts, arrays = request
        if "environment" not in facts:
            make = FORMS[sys.argv[1]](facts, arrays)
            send(answers, {})
            continue
        assert make is not None
        number, seeds = facts["policies"], facts["seeds"]
        each = len(arrays) // number
        act = make([list(arrays[first : first + each]) for first in range(0, len(arrays), each)])
        key = facts["environment"], len(seeds)
        if key not in environments:
            environments[key] = make_environment(*key, threads=1)
        generators = [np.random.default_rng(seed) for seed in seeds]
        send(answers, {}, whole_episodes(environments[key], act, generators, lambda: False))


if __name__ == "__main__":
    main()
