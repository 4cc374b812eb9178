"""The files beside a page: figures, tables, and the files that the page was made of."""

import dataclasses
import re
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from score_rl.disk import replacing, write_file
from score_rl.errors import InputError
from score_rl.report.drawing import save_figure
from score_rl.report.inline_svg import inline_svg

RAW = ("experiment.json", "status.json", "judgement.json", "metrics.csv", "summary.json", "curves.csv")


@dataclasses.dataclass(frozen=True)
class Drawn:
    """A figure in the page and its files."""

    title: str
    svg: Any  # Markup: made by `inline_svg`, which escapes
    files: Sequence[tuple[str, str]]  # (what it is, relative address)
    notes: Sequence[str] = ()
    curves: Any = None  # Markup: the same as JSON, for the page's script


class PageFiles:
    """Writes figures, tables and raw files into the folder of a page, each under a name of its own."""

    def __init__(self, out: Path, say: Callable[[str], None]) -> None:
        self.out, self.say = out, say
        self._taken: set[tuple[str, str]] = set()

    def unused_name(self, folder: str, wanted: str) -> str:
        """A file name that works everywhere and was not used yet in this folder."""
        plain = re.sub(r"[^A-Za-z0-9.=_-]+", "-", wanted).strip("-.")[:100] or "unnamed"
        chosen, number = plain, 2
        while (folder, chosen.lower()) in self._taken:  # some file systems do not tell A from a
            chosen, number = f"{plain}-{number}", number + 1
        self._taken.add((folder, chosen.lower()))
        return chosen

    def draw(self, figure: Any, name: str, title: str, notes: Sequence[str] = ()) -> Drawn:
        """A figure as it stands in the page, and its SVG and PDF."""
        from markupsafe import Markup

        name = self.unused_name("figures", name)
        self.say(f"Drawing {name} ...")
        files = save_figure(figure, self.out / "figures", name)
        svg = Markup(inline_svg(figure, _identifier(name), title))  # inline_svg escapes
        return Drawn(title, svg, [(path.suffix[1:].upper(), _link("figures", path.name)) for path in files], notes)

    def write_table(self, name: str, csv: str, latex: str) -> list[tuple[str, str]]:
        """A table as CSV and LaTeX: what each is, and its address."""
        name = self.unused_name("tables", name)
        write_file(self.out / "tables" / f"{name}.csv", csv)
        write_file(self.out / "tables" / f"{name}.tex", latex)
        return [("CSV", _link("tables", f"{name}.csv")), ("LaTeX", _link("tables", f"{name}.tex"))]

    def write_csv(self, name: str, csv: str) -> list[tuple[str, str]]:
        """A table as CSV alone."""
        name = self.unused_name("tables", name)
        write_file(self.out / "tables" / f"{name}.csv", csv)
        return [("CSV", _link("tables", f"{name}.csv"))]

    def copy_raw(self, folder: Path, wanted: str) -> list[tuple[str, str]]:
        """The files of a folder with results, under other names: a report must not be found as one more experiment."""
        name, files = self.unused_name("raw", wanted), []
        for file in RAW:
            if (folder / file).is_symlink():
                raise InputError(f"{folder / file} is a link, and none is followed here; put the file itself there.")
            if (folder / file).is_file():
                with replacing(self.out / "raw" / f"{name}.{file}", if_full="free some space") as temporary:
                    shutil.copyfile(folder / file, temporary)
                files.append((file, _link("raw", f"{name}.{file}")))
        return files


def _link(*parts: str) -> str:
    return "/".join(quote(part) for part in parts)


def _identifier(name: str) -> str:
    return "f-" + re.sub(r"[^A-Za-z0-9_-]", "-", name)
