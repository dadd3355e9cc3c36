"""Builds the documentation site: build.py REPOSITORY FOLDER.

The site has the repository's own tree (README.md, docs, bench, ...), so that a link which works between the Markdown
files works between the pages too. The Markdown files, the notebooks as Markdown, and the files that they link to, are
copied to a temporary folder; MkDocs builds them with --strict; then every link of every page is followed, and nothing may come from another host.
"""

import base64
import fnmatch
import html.parser
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.parse

import yaml

LINK = re.compile(r"\]\(([^)\s]+)\)")
BACKGROUND = ("docs/adr/", "docs/validation/", "bench/", "testdata/", "capture/") # a search shows these after the pages for users


def main(repository, folder):
    repository, folder = pathlib.Path(repository).resolve(), pathlib.Path(folder).resolve()
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=repository, check=True, capture_output=True, text=True,
    ).stdout.split("\0")
    files = {name for name in listed if name and (repository / name).is_file()}
    pages = {name: (repository / name).read_text() for name in files if name.endswith(".md")}
    pictures = {}
    for name in sorted(files):
        if name.endswith(".ipynb"):
            pages[page_of(name)] = notebook(repository / name, pictures)
    with tempfile.TemporaryDirectory() as temporary:
        stage = pathlib.Path(temporary)
        copy(repository, stage / "pages", files, pages)
        for name, picture in pictures.items():
            (stage / "pages" / name).write_bytes(picture)
        for name in ("extra.css", "iframe-worker.js"):
            shutil.copyfile(repository / "docs/site" / name, stage / "pages" / name)
        configure(repository / "docs/site/mkdocs.yml", stage, folder, sorted(pages))
        mkdocs = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--config-file", "mkdocs.yml"]
        environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1", "DISABLE_MKDOCS_2_WARNING": "true"}
        if subprocess.run(mkdocs, cwd=stage, env=environment).returncode != 0:
            return 1
    broken = check(folder)
    for line in broken:
        print("site:", line, file=sys.stderr)
    return 1 if broken else 0


def page_of(name):
    """The page of a notebook."""
    return name.removesuffix(".ipynb") + ".md"


def notebook(path, pictures):
    """A notebook with its outputs as Markdown; its pictures are added to pictures by their names in the site."""
    texts, folder, stem = [], path.parent.name, path.stem
    for cell in json.loads(path.read_text())["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            texts.append(source)
            continue
        texts.append(f"```python\n{source}\n```")
        for output in cell["outputs"]:
            data = output.get("data", {})
            if "image/png" in data:
                name = f"{stem}-{len(pictures) + 1}.png"
                pictures[f"{folder}/{name}"] = base64.b64decode(data["image/png"])
                texts.append(f"![What this code draws]({name})")
            elif "text/html" in data: # a table of pandas; without its own style it looks like those of the site
                table = re.sub(r"<style.*?</style>", "", "".join(data["text/html"]), flags=re.DOTALL)
                table = table.replace(' border="1" class="dataframe"', "")
                texts.append("\n".join(line for line in table.splitlines() if line.strip()))
            else:
                shown = "".join(output.get("text", data.get("text/plain", "")))
                texts.append(f"```text\n{shown.rstrip()}\n```")
    return "\n\n".join(texts) + "\n"


def copy(repository, to, files, pages):
    """Writes the pages, and copies the files of the repository that they link to."""
    wanted = set()
    for page, text in pages.items():
        for target in LINK.findall(text):
            if not urllib.parse.urlsplit(target).scheme:
                wanted.add(os.path.normpath(os.path.join(os.path.dirname(page), target.split("#")[0])))
        path = to / page
        path.parent.mkdir(parents=True, exist_ok=True)
        text = re.sub(r"\A(<!--.*?-->\s*)+", "", text, flags=re.DOTALL) # MkDocs takes the title from a heading that comes first
        text = re.sub(r"(\]\([^)\s]+)\.ipynb([)#])", r"\1.md\2", text)
        if page.startswith(BACKGROUND):
            text = "---\nsearch: {boost: 0.3}\n---\n\n" + text
        path.write_text(text)
    for name in sorted(wanted & files - set(pages)):
        if not name.endswith(".ipynb"):
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(repository / name, to / name)


def configure(template, stage, folder, pages):
    """Writes mkdocs.yml. A pattern in its nav stands for the matching pages that are not named and that no earlier pattern took."""
    config = yaml.load(template.read_text(), Loader=yaml.BaseLoader)
    placed = set(names(config["nav"]))

    def expand(entries):
        for entry in entries:
            if isinstance(entry, dict):
                (title, below), = entry.items()
                yield {title: list(expand(below)) if isinstance(below, list) else below}
            elif "*" in entry:
                found = [page for page in fnmatch.filter(pages, entry) if page not in placed]
                placed.update(found)
                yield from found
            else:
                yield entry

    # The rest of the template is passed on as text: it has tags of MkDocs' own.
    text = template.read_text().split("\nnav:\n")[0]
    nav = yaml.safe_dump({"nav": list(expand(config["nav"]))}, sort_keys=False, allow_unicode=True)
    (stage / "mkdocs.yml").write_text(f"{text}\ndocs_dir: pages\nsite_dir: {folder}\n{nav}")


def names(entries):
    """The pages that a nav names."""
    for entry in entries:
        if isinstance(entry, dict):
            (below,) = entry.values()
            yield from names(below if isinstance(below, list) else [below])
        else:
            yield entry


class Page(html.parser.HTMLParser):
    """The anchors of a page, its links, and what a browser loads to show it."""

    def __init__(self, path):
        super().__init__()
        self.anchors, self.links, self.loads = {""}, [], []
        self.feed(path.read_text())

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.anchors.update(v for k, v in attributes.items() if k in ("id", "name") and v)
        for key in ("href", "src"):
            if attributes.get(key):
                self.links.append(attributes[key])
                if tag != "a" and attributes.get("rel") != "canonical":
                    self.loads.append(attributes[key])


def check(folder):
    """Follows every link of every page, and returns those that lead nowhere or load from another host."""
    pages = {path: Page(path) for path in folder.rglob("*.html")}
    broken = []
    for path, page in sorted(pages.items()):
        at = path.relative_to(folder)
        for load in page.loads:
            if urllib.parse.urlsplit(load).netloc:
                broken.append(f"{at} loads {load} from another host")
        for link in page.links:
            parts = urllib.parse.urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = path
            if parts.path:
                target = pathlib.Path(os.path.normpath(path.parent / urllib.parse.unquote(parts.path)))
            if target.is_dir():
                target /= "index.html"
            if not target.exists():
                if at.name != "404.html":  # whose links begin at the root of a server
                    broken.append(f"{at}: no file for the link {link}")
            elif target in pages and urllib.parse.unquote(parts.fragment) not in pages[target].anchors:
                broken.append(f"{at}: no anchor for the link {link}")
    if not pages:
        broken.append(f"no page in {folder}")
    return broken


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
