"""The conda recipe says what pyproject.toml says."""

import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import jinja2
import yaml
from packaging.tags import platform_tags

FOLDER = Path(__file__).parent.parent


def test_the_recipe_agrees_with_the_project() -> None:
    project: dict[str, Any] = tomllib.loads((FOLDER / "pyproject.toml").read_text())
    rendered = jinja2.Template((FOLDER / "conda" / "meta.yaml").read_text()).render(
        environ={}, compiler=lambda language: f"compiler_{language}", PYTHON="python", SRC_DIR="/src", ARCH="64"
    )
    recipe = yaml.safe_load(rendered)
    assert recipe["package"]["name"] == project["project"]["name"]
    wanted = {word.replace("-base", "") for word in recipe["requirements"]["run_constrained"]}
    extras = project["project"]["optional-dependencies"].values()
    assert wanted == {need.replace(">", " >") for needs in extras for need in needs}
    assert "python " + project["project"]["requires-python"] in recipe["requirements"]["run"]
    (backend,) = project["build-system"]["requires"]
    assert backend.replace(">", " >") in recipe["requirements"]["host"]
    assert (FOLDER.parent / recipe["about"]["license_file"]).exists()
    build = " ".join(recipe["build"]["script"])
    hook = (FOLDER / "hatch_build.py").read_text()
    for name in ("COMMQ_BINARY", "COMMQ_PLATFORM"):
        assert f"{name}=" in build and f'"{name}"' in hook
    found = re.search(r"COMMQ_PLATFORM=(.+?) python ", build)
    assert found
    tag = subprocess.run(["sh", "-c", f"echo {found[1]}"], capture_output=True, text=True, check=True).stdout.strip()
    assert tag in set(platform_tags())  # of the machine that builds; pip check refuses others
