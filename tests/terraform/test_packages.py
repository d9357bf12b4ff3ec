"""Packages of an installation: needed by an upload alone, and refused where they are stale."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from infra.lab.moto import Moto
from infra.lab.terraform import Stack
from infra.package.build import STAGES
from infra.package.interpreter import machine_architecture
from tests.terraform.newer import make_newer

pytestmark = [pytest.mark.timeout(600), pytest.mark.usefixtures("_terraform")]

REFUSED = "Run `make package` in the checkout that the module is part of"


class Checkout:
    """A checkout with a stack of its minimal example, and the folder that has its packages."""

    def __init__(self, folder: Path, moto: Moto, built: Mapping[str, Path]) -> None:
        self.stack = Stack(folder, "aws-minimal", moto.url, {})
        more = {"module": {"bellhop": {"architecture": machine_architecture()}}}
        (self.stack.place / "here_override.tf.json").write_text(json.dumps(more))
        self.dist = folder / "dist" / "aws"
        shutil.copytree(next(iter(built.values())).parent, self.dist)

    def changes(self, *more: str) -> dict[str, Any]:
        """Return what a plan would change, by the addresses of the resources."""
        self.stack.run("plan", "-out=plan", *more)
        told = json.loads(self.stack.run("show", "-json", "plan"))
        return {
            each["address"]: each["change"]
            for each in told["resource_changes"]
            if each["mode"] == "managed" and each["change"]["actions"] != ["no-op"]
        }

    @contextmanager
    def without_packages(self) -> Iterator[None]:
        """Be a machine on which nobody has built packages."""
        aside = self.dist.with_name("aside")
        self.dist.rename(aside)
        try:
            yield
        finally:
            aside.rename(self.dist)

    @contextmanager
    def changed(self, path: Path) -> Iterator[None]:
        """Change a file by one byte."""
        content = path.read_bytes()
        path.write_bytes(content + b"\n")
        try:
            yield
        finally:
            path.write_bytes(content)


@pytest.fixture(scope="module")
def own_account(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Moto]:
    """An account that no other test uses."""
    with Moto(tmp_path_factory.mktemp("account")) as one:
        yield one


@pytest.fixture(scope="module")
def checkout(
    tmp_path_factory: pytest.TempPathFactory, own_account: Moto, built: Mapping[str, Path]
) -> Checkout:
    """An installation as it was applied from packages.

    The first test that wants it waits for a minute: Terraform applies it resource by resource.
    """
    one = Checkout(tmp_path_factory.mktemp("packages") / "checkout", own_account, built)
    one.stack.run("apply", "-auto-approve")
    return one


def test_a_plan_needs_no_packages(checkout: Checkout) -> None:
    """One that finds all as it is; the last test destroys without them."""
    with checkout.without_packages():
        assert checkout.changes() == {}


def test_stale_packages_are_refused(checkout: Checkout) -> None:
    """Those of other sources than the checkout's, before anything is changed; a destroy is not."""
    source = checkout.stack.root / "shared" / "bellhop" / "errors.py"
    with checkout.changed(source):
        told = " ".join(checkout.stack.run("apply", "-auto-approve", expect=(1,)).split())
        assert REFUSED in told
        assert len(checkout.changes("-destroy")) > len(STAGES)


def test_a_package_that_is_not_as_it_was_built_is_refused(checkout: Checkout) -> None:
    """Its sum is not the one in the list beside it."""
    [package] = checkout.dist.glob("functions-*.zip")
    with checkout.changed(package):
        assert REFUSED in " ".join(checkout.stack.run("plan", expect=(1,)).split())


def test_two_machines_plan_the_same(checkout: Checkout) -> None:
    """One that has built the packages of newer sources, and one that has not.

    This and the next are the last tests here, since the sources stay as they are then.
    """
    make_newer(checkout.stack.root, checkout.dist)
    told = checkout.changes()
    with checkout.without_packages():
        assert checkout.changes() == told

    functions = {each for each in told if "aws_lambda_function.stage" in each}
    assert len(functions) == len(STAGES) - 1
    assert {tuple(each["actions"]) for each in told.values()} == {("update",)}


def test_a_destroy_needs_no_packages(checkout: Checkout) -> None:
    """Whoever destroys may have another machine, and newer sources."""
    with checkout.without_packages():
        assert "Destroy complete!" in checkout.stack.run("destroy", "-auto-approve")
