"""The charts as Helm renders and installs them, packed once for all tests of a run."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from bellhop.adapters.programs.layer import download
from infra.charts.build import CHARTS, archive_name, write_charts
from tests.missing import required

Values = Mapping[str, Any]


@cache
def find_helm() -> Path:
    """Return the program, which is downloaded where it is missing."""
    with required():
        return download() / "helm"


class Charts:
    """Both archives in a folder, and Helm with a home of its own."""

    def __init__(self, folder: Path, kubeconfig: Path | None = None) -> None:
        self.folder = folder
        self._kubeconfig = kubeconfig
        list(write_charts(folder))

    def archive(self, name: str) -> str:
        """Return the path of a chart's archive."""
        return str(self.folder / archive_name(name))

    def helm(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run Helm, whatever the result."""
        home = str(self.folder / "home")
        environment = {"HOME": home, "PATH": "/usr/bin:/bin"}
        if self._kubeconfig:
            environment["KUBECONFIG"] = str(self._kubeconfig)
        return subprocess.run(
            [find_helm(), *arguments],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )

    def do(self, *arguments: str) -> str:
        """Run Helm, which must succeed; return what it prints."""
        done = self.helm(*arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def template(
        self, name: str, values: Values | None = None, *more: str
    ) -> subprocess.CompletedProcess[str]:
        """Have Helm render a chart into the namespace `bellhop`."""
        place = ("--namespace", "bellhop", *more)
        return self.helm("template", "x", self.archive(name), *place, *set_values(values or {}))

    def render(self, name: str, values: Values | None = None, *more: str) -> list[dict[str, Any]]:
        """Return the objects that Helm renders."""
        done = self.template(name, values, *more)
        assert done.returncode == 0, done.stderr
        return [each for each in yaml.safe_load_all(done.stdout) if each]


def set_values(values: Values) -> list[str]:
    """Return the options of Helm that set values, by their dotted names."""
    return [f"--set-json={name}={json.dumps(value)}" for name, value in values.items()]


def read_values(name: str) -> dict[str, Any]:
    """Return the default of each value of a chart, by its dotted name."""
    return dict(_list_leaves("", yaml.safe_load((CHARTS / name / "values.yaml").read_text())))


def _list_leaves(place: str, value: Any) -> list[tuple[str, Any]]:
    if not isinstance(value, dict) or not value or place == "resources":
        return [(place, value)]
    joined = f"{place}." if place else ""
    return [leaf for key, each in value.items() for leaf in _list_leaves(f"{joined}{key}", each)]


def of_kind(objects: list[dict[str, Any]], kind: str, name: str = "bellhop") -> dict[str, Any]:
    """Return the one object of a kind with a name."""
    [found] = [
        each for each in objects if each["kind"] == kind and each["metadata"]["name"] == name
    ]
    return found
