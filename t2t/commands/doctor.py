"""`t2t doctor`: versions and devices, what is missing and how to get it."""

import dataclasses
import importlib.metadata
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence

from t2t import __version__, finding
from t2t.commands import arguments as arguments_lib

EXTRAS = {
    "metrics": "BLEU, ROUGE, F1 and correlations",
    "tpu": "train on TPUs",
    "cuda": "train on NVIDIA GPUs",
    "test": "run the tests",
}
"""What each optional group of dependencies is for."""

PLUGINS = {"tpu": "libtpu", "cuda": "jax-cuda13-plugin"}
"""The package that shows whether an extra of JAX is installed: jax itself is there either way."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Doctor:
    """Show versions and devices, what is missing and how to get it. The exit code is 1 where t2t cannot run."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Package:
    """One dependency: what is required, for which extra ("" = always), and what is there (None = nothing)."""

    requirement: str
    extra: str
    installed: str | None
    fits: bool

    @property
    def name(self) -> str:
        """The package without versions and extras."""
        return re.split(r"[^A-Za-z0-9_.-]", self.requirement, maxsplit=1)[0]


def required_packages() -> tuple[Package, ...]:
    """Every dependency of the installed t2t and whether the installed version fits."""
    from packaging.requirements import Requirement

    packages = []
    for line in importlib.metadata.requires("t2t") or ():
        requirement = Requirement(line)
        extras = re.findall(r"extra == ['\"](\w+)['\"]", str(requirement.marker or ""))
        if requirement.name == "t2t":  # an extra that contains others
            continue
        extra = "".join(extras[:1])
        installed = _installed_version(PLUGINS.get(extra, requirement.name))
        fits = installed is not None and (extra in PLUGINS or requirement.specifier.contains(installed, True))
        wanted = PLUGINS.get(extra) or f"{requirement.name}{requirement.specifier}"
        packages.append(Package(requirement=wanted, extra=extra, installed=installed, fits=fits))
    return tuple(packages)


def _installed_version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def find_problems(packages: Sequence[Package]) -> tuple[str, ...]:
    """What keeps t2t from running, each with the command that repairs it."""
    problems = []
    for package in packages:
        if package.extra or package.fits:
            continue
        found = f"{package.installed} is installed" if package.installed else "nothing is installed"
        problems.append(f"{package.requirement} is required, {found}: pip install '{package.requirement}'")
    if not (3, 11) <= sys.version_info[:2] <= (3, 13):
        problems.append(f"Python 3.11 to 3.13 is required, this is {platform.python_version()}")
    return tuple(problems)


def _describe_devices() -> list[str]:
    import jax

    try:
        devices = jax.devices()
    except RuntimeError as error:
        return [f"JAX finds no device: {error}"]
    kinds = sorted({device.device_kind for device in devices})
    lines = [f"{len(devices)} x {', '.join(kinds)} ({jax.default_backend()}), {jax.process_count()} process(es)"]
    if jax.default_backend() == "cpu":
        if shutil.which("nvidia-smi") and not subprocess.run(["nvidia-smi", "-L"], capture_output=True).returncode:
            lines.append("there is an NVIDIA GPU that JAX does not use: pip install 't2t[cuda]'")
        if any(pathlib.Path("/dev").glob("accel*")):
            lines.append("there is a TPU that JAX does not use: pip install 't2t[tpu]'")
    return lines


def _describe_extras(packages: Sequence[Package]) -> list[str]:
    lines = []
    for extra, purpose in EXTRAS.items():
        missing = [package.requirement for package in packages if package.extra == extra and not package.fits]
        there = f"missing {', '.join(missing)}: pip install 't2t[{extra}]'" if missing else "complete"
        lines.append(f"{extra:<8} ({purpose}): {there}")
    return lines


def run(arguments: Sequence[str]) -> int:
    """Print the report; 1 where something keeps t2t from running."""
    arguments_lib.parse(Doctor, arguments, command="doctor")
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False, soft_wrap=True)
    print(f"t2t {__version__} at {pathlib.Path(__file__).parents[1]}, recipes at {finding.recipes_root()}")
    print(f"Python {platform.python_version()} on {platform.platform()}, {os.cpu_count()} CPU cores")
    try:
        packages = required_packages()
    except importlib.metadata.PackageNotFoundError:
        print("t2t is not installed, only importable: pip install -e . in its clone, so that versions can be checked")
        packages = ()
    table = Table("package", "required", "installed", box=None, pad_edge=False)
    for package in packages:
        if not package.extra:
            table.add_row(package.name, package.requirement.removeprefix(package.name), package.installed or "MISSING")
    console.print(table)
    print()
    problems = find_problems(packages)
    for title, lines in (
        ("devices", [] if problems else _describe_devices()),
        ("extras", _describe_extras(packages) if packages else []),
        ("disk", [f"{shutil.disk_usage('.').free / 1e9:.1f} GB free here; a run of quickstart takes 0.1 GB"]),
        ("problems", list(problems) or ["none"]),
    ):
        for i, line in enumerate(lines):
            print(f"{title if i == 0 else '':<10}{line}")
    return 1 if problems else 0
