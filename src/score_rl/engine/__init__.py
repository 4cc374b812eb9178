"""The compiled part: arrays and an algorithm in, trained states out. No console, no disk, no flags.

>>> runs = engine.make_runs(algorithm, [dataset], seeds=range(4))
>>> results = engine.train(runs, updates=10_000, window=1_000)

docs/engine.md has an example that runs when pasted. For less than a whole training, see `FleetProgram`.
"""

from score_rl.engine.memory import split_fleet
from score_rl.engine.program import FleetProgram
from score_rl.engine.runs import Run, group_fleets
from score_rl.engine.stage_program import StageProgram
from score_rl.engine.training import RunResult, make_runs, train

__all__ = ["FleetProgram", "Run", "RunResult", "StageProgram", "group_fleets", "make_runs", "split_fleet", "train"]
