"""What the site shows beside docs/: two documents of the root, and every repository file that a page links to.

The documents link to files outside of docs/, as they should on a forge. A Python file becomes a page with numbered
lines. Other files are copied as they are. A folder becomes a list of its files. So every link works without a network.
"""

import re
from pathlib import Path, PurePosixPath

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]
PLACE = "repository"  # where they lie in the site
ALSO_PAGES = {"CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changes.md", "SECURITY.md": "report-a-weakness.md"}
INSTEAD = {"README.md": "index.md"} | ALSO_PAGES  # pages of the site for documents of the root
NOTEBOOK = re.compile(r"\]\((notebooks/\w+)\.ipynb\)")  # a page of the site, too
OUTSIDE = re.compile(r"\[(?P<text>[^\]]*)\]\(\.\./(?P<path>[^)#\s]+)(?:#L(?P<line>\d+))?\)")
NOT_SEARCHED = "---\nsearch:\n  exclude: true\n---\n"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages and files that the documents link to."""
    for name, uri in ALSO_PAGES.items():
        files.append(File.generated(config, uri, content=as_in_docs((ROOT / name).read_text())))
    wanted = {
        match["path"].rstrip("/")
        for page in files.documentation_pages()
        if in_docs_itself(page)
        for match in OUTSIDE.finditer(page.content_string)
        if match["path"] not in INSTEAD
    }
    for path in sorted(wanted):
        for file in shown(path, config):
            if files.get_file_from_path(file.src_uri) is None:
                files.append(file)
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Let links to the repository's files lead to where the site has them."""
    if not in_docs_itself(page.file):
        return markdown
    markdown = NOTEBOOK.sub(r"](\1.md)", markdown)
    return OUTSIDE.sub(lambda match: link(match["text"], match["path"].rstrip("/"), match["line"]), markdown)


def in_docs_itself(file: File) -> bool:
    """Whether ../ leads out of docs/."""
    return "/" not in file.src_uri


def as_in_docs(text: str) -> str:
    """A document of the repository's root, as if it lay in docs/."""
    text = re.sub(r"\]\((?!docs/|#|[a-z]+:)([^)\s]+)\)", r"](../\1)", text)
    return text.replace("](docs/", "](")


def shown(path: str, config: MkDocsConfig) -> list[File]:
    """The site's files for one of the repository's."""
    full = ROOT / path
    if full.is_dir():
        inside = sorted(child for child in full.iterdir() if not child.name.startswith((".", "__")))
        text = "\n".join(f"- {_entry(child)}" for child in inside)
        listed = _generated(config, f"{PLACE}/{path}/index.md", f"# {path}\n\n{text}\n")
        return [listed, *(_copied(config, child) for child in inside if child.is_file())]
    if full.suffix == ".py":
        text = f'# {full.name}\n\n`{path}`\n\n```python linenums="1"\n{full.read_text()}```\n'
        return [_generated(config, f"{PLACE}/{path}.md", text)]
    return [_copied(config, full)]


def link(text: str, path: str, line: str | None) -> str:
    """A link of a page in docs/ to where the site has the file."""
    if path in INSTEAD:
        return f"[{text}]({INSTEAD[path]})"
    if (ROOT / path).is_dir():
        return f"[{text}]({PLACE}/{path}/index.md)"
    if not path.endswith(".py"):
        return f"[{text}]({PLACE}/{path})"
    if line is None:
        return f"[{text}]({PLACE}/{path}.md)"
    return f'<a href="{PLACE}/{path}.html#__codelineno-0-{line}">{text}</a>'  # anchors of lines are not headings


def _entry(child: Path) -> str:
    return f"{child.name}/" if child.is_dir() else f"[{child.name}]({child.name})"


def _generated(config: MkDocsConfig, uri: str, text: str) -> File:
    return File.generated(config, uri, content=NOT_SEARCHED + text, inclusion=InclusionLevel.NOT_IN_NAV)


def _copied(config: MkDocsConfig, path: Path) -> File:
    uri = str(PurePosixPath(PLACE, path.relative_to(ROOT).as_posix()))
    return File.generated(config, uri, abs_src_path=str(path), inclusion=InclusionLevel.NOT_IN_NAV)
