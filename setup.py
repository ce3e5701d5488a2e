"""Everything about the package stands in pyproject.toml; this adds the recipes, which setuptools cannot express there.

A wheel carries copies of `tasks/` and `configs/` under `t2t/recipes/`, where the command line finds them.
"""

import pathlib
import shutil

from setuptools import setup
from setuptools.command.build_py import build_py

RECIPES = ("tasks", "configs")


class BuildWithRecipes(build_py):
    """Copies the recipes into the package, but not for editable installs: those find them in the clone."""

    def run(self):
        """Copy the modules, then the recipes."""
        super().run()
        if self.editable_mode:
            return
        for name in RECIPES:
            target = pathlib.Path(self.build_lib, "t2t", "recipes", name)
            shutil.rmtree(target, ignore_errors=True)
            shutil.copytree(name, target, ignore=shutil.ignore_patterns("__pycache__", "*.pyc", ".*"))


setup(cmdclass={"build_py": BuildWithRecipes})
