"""A process that judges: `python -m score_rl.rollout.worker`, started by `processes.py` and by nobody else.

It is told once how policies act; then for each question it gets a policy's numbers and the seeds of its episodes,
and answers with returns, lengths and successes. It ends when its questions end, or when who asked is gone.
"""

import os
import sys
import traceback

import numpy as np

from score_rl.envs import Environment, make_environment
from score_rl.errors import InputError
from score_rl.rollout.episodes import whole_episodes
from score_rl.rollout.instructions import Instructions
from score_rl.rollout.messages import receive, send


def main() -> None:
    if len(sys.argv) > 1 and hasattr(os, "nice"):
        os.nice(int(sys.argv[1]))
    questions, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever prints must not print into the answers
    asker = os.getppid()
    told = receive(questions)
    if told is None:
        return
    facts, constants = told
    instructions = Instructions.from_json(facts["instructions"], constants)
    environments: dict[str, Environment] = {}
    while (question := receive(questions)) is not None:
        try:
            asked, numbers = question
            name = asked["environment"]
            if name not in environments:
                slots = facts["episodes"]
                environments[name] = make_environment(name, slots, physics=facts["physics"], threads=1)
            generators = [np.random.default_rng(seeds) for seeds in asked["seeds"]]
            act = instructions.policy(numbers)
            together = facts["episodes"]
            parts = [
                whole_episodes(
                    environments[name],
                    act,
                    generators[start : start + together],
                    lambda: os.getppid() != asker,
                    with_noise=facts["with_noise"],
                )
                for start in range(0, len(generators), together)
            ]
            arrays = [np.concatenate(columns) for columns in zip(*parts, strict=True)]
        except InterruptedError:
            return
        except InputError as refused:
            send(answers, {"refused": str(refused)})
        except Exception:
            send(answers, {"failure": traceback.format_exc()})
        else:
            send(answers, {}, arrays)


if __name__ == "__main__":
    main()
