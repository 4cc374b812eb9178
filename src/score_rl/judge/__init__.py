"""Policies judged from recorded data alone, without a simulator; docs/judging.md says by which rules.

The package has the name of its function: `score_rl.judge(experiment)` judges, whatever was imported before.
"""

import sys
from types import ModuleType
from typing import Any


class _Judge(ModuleType):
    """Importing a package puts it in the place of the function of this name, so it acts as the function does."""

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        from score_rl.judge.judging import judge

        return judge(*arguments, **options)


sys.modules[__name__].__class__ = _Judge
