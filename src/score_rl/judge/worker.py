"""A process that judges: `python -m score_rl.judge.worker`, started by `judge.processes` and by nobody else.

It is told a policy's program once; then for each question it gets a policy's numbers and the seeds of its episodes,
and answers with returns and lengths. It ends when its questions end, or when who asked is gone.
"""

import os
import sys
import traceback
from typing import Any

import numpy as np

from score_rl.envs import Environment, make_environment
from score_rl.judge.messages import receive, send
from score_rl.judge.rollouts import whole_episodes


def main() -> None:
    questions, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever prints must not print into the answers
    asker = os.getppid()
    told = receive(questions)
    if told is None:
        return
    (facts, (program,)) = told
    import jax
    from jax import export

    call = jax.jit(export.deserialize(bytearray(program.tobytes())).call)
    environments: dict[str, Environment] = {}
    while (question := receive(questions)) is not None:
        try:
            asked, numbers = question
            name, policy = asked["environment"], jax.device_put(numbers)
            if name not in environments:
                slots = facts["episodes"]
                environments[name] = make_environment(name, slots, physics=facts["physics"], threads=1)

            def act(observations: np.ndarray, policy: Any = policy) -> np.ndarray:
                return np.asarray(call(policy, observations[None]))[0]

            generators = [np.random.default_rng(seeds) for seeds in asked["seeds"]]
            arrays = whole_episodes(environments[name], act, generators, lambda: os.getppid() != asker)
        except InterruptedError:
            return
        except Exception:
            send(answers, {"failure": traceback.format_exc()})
        else:
            send(answers, {}, arrays)


if __name__ == "__main__":
    main()
