"""A hook for MkDocs: makes the pages of the repository, which are written for GitHub, work in the site.

- README.md becomes the start page, and docs/README.md the page `pages.md`.
- A file outside docs/ to which a page links becomes a page too: Markdown as it is, other text as a code block.
- Lists are written as Python-Markdown needs them, and code inside HTML tables is rendered.
"""

import importlib.machinery
import importlib.util
import logging
import os
import re
from pathlib import Path
from urllib.parse import unquote

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[2]
LOG = logging.getLogger("mkdocs.hooks.site")


def _load_check_links():
    loader = importlib.machinery.SourceFileLoader("check_links", str(ROOT / "scripts/docs/check-links"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("check_links", loader))
    loader.exec_module(module)
    return module


CHECK = _load_check_links()
# Where a Markdown link has its target: `](target`, `href="target"`, `src="target"`, `[name]: target`.
TARGET = re.compile(r"(\]\(\s*<?|\b(?:href|src)=[\"']|^ {0,3}\[[^\]]+\]:\s*)([^\s()<>\"']+)", re.M)
LANGUAGES = {".rs": "rust", ".c": "c", ".h": "c", ".cpp": "cpp", ".py": "python", ".toml": "toml", ".ndjson": "json",
             ".sh": "sh"}
# Many tables are wide.
STYLE = ".md-grid { max-width: 78rem; }\n"
ITEM = re.compile(r"^( *)([-*+]|\d+\.)( +)\S")


def site_path(path):
    """The page or file of the site that shows this file of the repository."""
    if path == "README.md":
        return "index.md"
    if path == "docs/README.md":
        return "pages.md"
    if path.startswith("docs/"):
        return path[len("docs/"):]
    return f"files/{path}" if path.endswith(".md") else f"files/{path}.md"


def local(target):
    """The file part and the anchor part of a link to another file of the repository, or None."""
    if re.match(r"[a-zA-Z][a-zA-Z0-9+.-]*:|//|#", target):
        return None
    name, mark, anchor = target.partition("#")
    return unquote(name), mark + anchor


def resolve(page, name):
    """The path in the repository of a link on `page`."""
    return os.path.normpath(os.path.join(os.path.dirname(page), name)).replace(os.sep, "/")


def outside(pages):
    """The files outside docs/ to which these pages link, and to which those link in turn."""
    found, todo = [], list(pages)
    while todo:
        page = todo.pop()
        for _, target in CHECK.links((ROOT / page).read_text(encoding="utf-8")):
            parts = local(target)
            path = parts and resolve(page, parts[0])
            if not path or path.startswith("docs/") or path in found or not (ROOT / path).is_file():
                continue
            found.append(path)
            if path.endswith(".md"):
                todo.append(path)
    return found


def on_files(files, config):
    readme = files.get_file_from_path("README.md")
    kept = Files([file for file in files if file is not readme])
    pages = ["README.md", "docs/README.md"]
    pages += [f"docs/{file.src_uri}" for file in kept if file.src_uri.endswith(".md")]
    for path in dict.fromkeys(["README.md", "docs/README.md", *outside(pages)]):
        text = (ROOT / path).read_text(encoding="utf-8")
        if not path.endswith(".md"):
            language = LANGUAGES.get(os.path.splitext(path)[1], "text")
            fence = "`" * 5
            text = f"---\nsearch:\n  exclude: true\n---\n# {path}\n\n{fence}{language}\n{text}\n{fence}\n"
        file = File.generated(config, site_path(path), content=text)
        file.repository_path = path
        # Files that are shown but not listed in the navigation.
        if not path.endswith(".md") or path == "examples/simulate/README.md":
            file.inclusion = file.inclusion.NOT_IN_NAV
        kept.append(file)
    kept.append(File.generated(config, "assets/site.css", content=STYLE))
    return kept


def lists(text):
    """GitHub begins a list without an empty line before it, and nests by two spaces; Python-Markdown does not."""
    lines, fence, before, indents, paragraph = [], None, "", [], False
    for line in text.splitlines():
        mark = CHECK.FENCE.match(line)
        if mark and (fence is None or line.strip().startswith(fence)):
            fence = mark.group(1) if fence is None else None
        item = None if fence else ITEM.match(line)
        if item:
            depth = len(item.group(1))
            while indents and depth < indents[-1]:
                indents.pop()
            if before.strip() and (paragraph or not indents and not before.startswith(" ")):
                lines.append("")
            paragraph = False
            line = " " * 4 * len(indents) + line.lstrip()
            indents.append(depth + len(item.group(2)) + len(item.group(3)))
        elif not line.strip():
            pass
        elif indents and line.startswith(" " * indents[0]) and not fence:
            paragraph = paragraph or not before.strip()
            spaces = len(line) - len(line.lstrip())
            line = " " * 4 * sum(indent <= spaces for indent in indents) + line.lstrip()
        elif not fence and not line.startswith(" ") and not before.strip():
            indents = []
        lines.append(line)
        before = line
    return "\n".join(lines) + "\n"


def on_page_markdown(markdown, page, config, files):
    source = getattr(page.file, "repository_path", f"docs/{page.file.src_uri}")

    def rewrite(match):
        parts = local(match.group(2))
        if not parts or not parts[0]:
            return match.group(0)
        path = resolve(source, parts[0])
        to = site_path(path) if (ROOT / path).is_file() else None
        if to and files.get_file_from_path(to):
            target = os.path.relpath(to, os.path.dirname(page.file.src_uri) or ".").replace(os.sep, "/")
            return match.group(1) + target + parts[1]
        if config.repo_url:
            return f"{match.group(1)}{config.repo_url.rstrip('/')}/blob/main/{path}{parts[1]}"
        LOG.warning("%s links to %s, which is not in the site", source, path)
        return match.group(0)

    pieces, fence, text = [], None, []

    def flush():
        piece = "\n".join(text)
        pieces.append(piece if fence else TARGET.sub(rewrite, piece))
        text.clear()

    for line in markdown.splitlines():
        mark = CHECK.FENCE.match(line)
        if mark and fence is None:
            flush()
            fence = mark.group(1)
            # ```rust,no_run: rustdoc's attributes.
            text.append(line.partition(",")[0])
        elif mark and line.strip().startswith(fence):
            text.append(line)
            flush()
            fence = None
        else:
            text.append(line)
    flush()
    joined = lists("\n".join(pieces))
    return re.sub(r"<(table|tr|td)>", r'<\1 markdown="block">', joined)


def on_page_content(content, page, config, files):
    """In a table, GitHub writes a bar in code as `\\|`."""
    return re.sub(r"<td.*?</td>", lambda cell: cell.group(0).replace("\\|", "|"), content, flags=re.S)
