"""What a page says of a choice that `score select` made: the recommended policy, why, and what it was chosen from."""

import dataclasses
import shlex
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from score_rl.report.page_judgement import CLASSES
from score_rl.report.results import RunResult
from score_rl.store.selections import FILE, Choice, SelectionRecord, Variant, read_selection


@dataclasses.dataclass(frozen=True)
class ChoiceSection:
    """One selection that is finished."""

    folder: Path
    record: SelectionRecord
    choice: Choice

    @property
    def chosen(self) -> Variant | None:
        """What is recommended; None where no policy is."""
        return next((one.variant for one in self.choice.table if self.choice.run in one.runs), None)

    @property
    def export(self) -> str:
        folder, run = shlex.quote(str(self.folder / str(self.choice.folder))), shlex.quote(str(self.choice.run))
        return f"score export {folder} --run {run} --out policy.onnx"


def choice_sections(runs: Sequence[RunResult]) -> list[ChoiceSection]:
    """The finished selections whose stages are among the folders of these runs."""
    above = dict.fromkeys(run.folder.parent for run in runs)
    records = {folder: read_selection(folder) for folder in above if (folder / FILE).is_file()}
    return [ChoiceSection(folder, one, one.choice) for folder, one in records.items() if one.choice is not None]


def render_choice(sections: Sequence[ChoiceSection], environment: Any) -> Any:
    """The sections as HTML; empty where nothing was chosen."""
    from markupsafe import Markup

    if not sections:
        return Markup("")
    source = resources.files("score_rl.report").joinpath("page_choice.html").read_text()
    return Markup(environment.from_string(source).render(sections=sections, looks=CLASSES))  # its texts are escaped
