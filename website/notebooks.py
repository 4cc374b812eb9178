"""The notebooks of docs/notebooks as pages: their text, their code, and the outputs that are stored in them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

FOLDER = "notebooks"  # below docs/
SHOWN = ("text/html", "image/png", "text/plain")  # of an output, the first that there is


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """A page beside every notebook."""
    for path in sorted((Path(config.docs_dir) / FOLDER).glob("*.ipynb")):
        files.append(File.generated(config, f"{FOLDER}/{path.stem}.md", content=page(path)))
    return files


def page(path: Path) -> str:
    """A notebook as Markdown."""
    notebook = nbformat.read(path, as_version=4)
    parts = [part for cell in notebook.cells for part in _cell(cell)]
    first, *rest = parts
    about = f"*This page is a notebook: [{path.name}]({path.name}). Its outputs are those of a real run.*"
    title, _, text = first.partition("\n")
    return "\n\n".join([title, about, text.strip(), *rest]) + "\n"


def _cell(cell: Any) -> Iterator[str]:
    if cell.cell_type == "markdown":
        yield cell.source
        return
    yield f"```python\n{cell.source}\n```"
    for output in cell.outputs:
        yield from _output(output)


def _output(output: Any) -> Iterator[str]:
    if output.output_type == "stream":
        yield f"```text\n{output.text.rstrip()}\n```"
    elif "data" in output:
        kind = next(kind for kind in SHOWN if kind in output.data)
        content = output.data[kind]
        if kind == "text/html":
            plain = _without_blank_lines(content).replace('<table border="1" class="dataframe">', "<table>")
            yield f'<div class="output">\n{plain}\n</div>'
        elif kind == "image/png":
            yield f'<img alt="figure" src="data:image/png;base64,{content.strip()}">'
        else:
            yield f"```text\n{content}\n```"


def _without_blank_lines(text: str) -> str:
    """Markdown would end a piece of HTML at one."""
    return "\n".join(line for line in text.splitlines() if line.strip())
