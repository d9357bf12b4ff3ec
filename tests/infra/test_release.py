"""A release: what lies in it, that two builds are equal, and that it works where no checkout is."""

from __future__ import annotations

import configparser
import hashlib
import importlib.metadata
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import click
import pytest

from bellhop import __version__
from bellhop.cli.main import cli
from bellhop.errors import InvalidError, MissingError, PermanentError
from infra.lab.binaries import Binaries
from infra.lab.cluster import Cluster
from infra.lab.processes import Nursery, Process
from infra.package.files import build_id
from infra.release.archives import packed
from infra.release.checkout import Checkout, check_out
from infra.release.image import FORWARDER, IMAGES, SERVE, Image, archive_name, build_image
from infra.release.notes import notes
from tests.docs.terminal import Terminal, typed
from tests.infra.base_image import build_base_image, buildah
from tests.infra.release_files import clean_checkout, git, install_dependencies
from tests.lab.terraform import find_terraform
from tests.waiting import eventually

pytestmark = pytest.mark.timeout(600)  # Whichever test comes first builds and installs.

ROOT = Path(__file__).parents[2]
NAME = f"bellhop-{__version__}"
MADE = Checkout(root=ROOT, version=__version__, time=0, tagged=False)

# Without any extra only the modules of a cloud may lack something.
IMPORT_ALL = """
import importlib, pkgutil, bellhop
lacking = {}
for each in pkgutil.walk_packages(bellhop.__path__, "bellhop."):
    try:
        importlib.import_module(each.name)
    except ModuleNotFoundError as error:
        lacking[each.name] = error.name
print(sorted(name for name in lacking if not {"aws", "gcp"} & set(name.split("."))))
"""

NAMESPACE = "{apiVersion: v1, kind: Namespace, metadata: {name: shop, labels: {team: web}}}"


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clean checkout of the files as they are here, committed or not."""
    return clean_checkout(tmp_path_factory.mktemp("release") / "checkout")


def build(checkout: Path, base: str) -> Path:
    """Build what needs no zips of functions; tests of packages build those."""
    done = subprocess.run(
        [sys.executable, "-m", "infra.release", "--no-packages"],
        cwd=checkout,
        env={**os.environ, "PYTHONPATH": f"{checkout}:{checkout / 'shared'}", "BASE": base},
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return checkout / "dist" / "release"


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A base for both images."""
    return build_base_image(tmp_path_factory.mktemp("base") / "base.oci.tar")


@pytest.fixture(scope="module")
def released(checkout: Path, base: str) -> Path:
    """The files of a release."""
    return build(checkout, base)


@pytest.fixture(scope="module")
def installed(released: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The programs of the wheel, in a virtual environment that has nothing else."""
    place = tmp_path_factory.mktemp("installed") / "venv"
    uv = [sys.executable, "-m", "uv", "--quiet"]
    (wheel,) = released.glob("*.whl")
    subprocess.run([*uv, "venv", "--python", sys.executable, place], check=True)
    subprocess.run([*uv, "pip", "install", "--python", place, wheel], check=True)
    yield place / "bin"
    shutil.rmtree(place)


@pytest.fixture
def other_checkout(tmp_path: Path) -> Mapping[str, str]:
    """The environment of a user who has a home and nothing of ours."""
    (tmp_path / "home").mkdir()
    return {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path / "home")}


def sums(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}


def test_has_the_sums_of_all_its_files(released: Path) -> None:
    """SHA256SUMS lists each other file, as `sha256sum --check` reads it."""
    found = sums(released)
    del found["SHA256SUMS"]

    assert set(found) == {
        f"{NAME}.md",
        f"{NAME}.cdx.json",
        f"{NAME}-terraform.tar.gz",
        f"{NAME}.tgz",
        f"bellhop-forwarder-{__version__}.tgz",
        f"bellhop_fleet-{__version__}-py3-none-any.whl",
        f"bellhop_fleet-{__version__}.tar.gz",
        *(archive_name(each, MADE) for each in IMAGES),
    }
    lines = (released / "SHA256SUMS").read_text().splitlines()
    assert lines == [f"{digest}  {name}" for name, digest in sorted(found.items())]


def test_a_second_build_makes_the_same_bytes(checkout: Path, released: Path, base: str) -> None:
    """Later, of files that were written later: all that counts is the commit."""
    first = sums(released)
    for path in checkout.rglob("*.py"):
        path.touch()

    assert sums(build(checkout, base)) == first


def test_the_wheel_has_only_the_library(released: Path) -> None:
    """All that git has of it, and no test, function or tool beside it."""
    (wheel,) = released.glob("*.whl")
    with zipfile.ZipFile(wheel) as opened:
        names = {name for name in opened.namelist() if ".dist-info/" not in name}
    tracked = git(ROOT, "ls-files", "--cached", "--others", "--exclude-standard", "shared").split()

    assert names == {each.removeprefix("shared/") for each in tracked if (ROOT / each).is_file()}


def test_lists_the_locked_dependencies_of_all_extras(released: Path) -> None:
    """By the version that is tested, with what each needs itself, and none that tests need."""
    found = json.loads((released / f"{NAME}.cdx.json").read_text())
    versions = {each["name"]: each["version"] for each in found["components"]}

    assert {"kubernetes", "boto3", "google-cloud-firestore", "nats-py", "cel-expr-python"} <= {
        *versions
    }
    assert "pytest" not in versions
    for name in ("boto3", "click", "kubernetes", "pydantic"):
        assert versions[name] == importlib.metadata.version(name)
    assert found["metadata"]["component"]["version"] == __version__
    assert len(found["dependencies"]) > len(versions)


def test_the_modules_find_their_packages(released: Path, tmp_path: Path) -> None:
    """They lie beside the sources that packages are named after; examples find them."""
    with tarfile.open(released / f"{NAME}-terraform.tar.gz") as opened:
        opened.extractall(tmp_path, filter="data")
    root = tmp_path / NAME

    for kind in ("functions", "layer"):
        assert build_id(kind, root) == build_id(kind)
    for each in ("aws-minimal", "gcp-minimal"):
        text = (root / "terraform/examples" / each / "bellhop.tf").read_text()
        cloud = each.removesuffix("-minimal")
        assert f'packages = "../../../dist/{cloud}"' in text
    terraform = find_terraform()
    example = root / "terraform/examples/aws-minimal"
    unpacked = {"module": {"bellhop": {"source": "../../modules/aws"}}}
    (example / "unpacked_override.tf.json").write_text(json.dumps(unpacked))
    options = ["-backend=false", "-input=false", f"-plugin-dir={terraform.mirror}"]
    subprocess.run(
        [terraform.program, f"-chdir={example}", "init", *options],
        check=True,
        capture_output=True,
    )


@pytest.mark.parametrize(
    ("image", "option"),
    [(FORWARDER, "--kubeconfig"), (SERVE, "--own-cluster")],
    ids=["forwarder", "serve"],
)
def test_an_image_runs_its_program(
    released: Path, tmp_path: Path, image: Image, option: str
) -> None:
    """Loaded from its archive, under the name that `register` and charts use, as nobody."""
    archive = released / archive_name(image, MADE)
    [manifest] = json.loads(_member(archive, "index.json"))["manifests"]
    container = buildah(tmp_path, "from", f"oci-archive:{archive}").strip()
    found = json.loads(buildah(tmp_path, "inspect", container))["OCIv1"]
    config = found["config"]
    run = ("run", "--isolation=chroot", container, "--")

    assert manifest["annotations"]["org.opencontainers.image.ref.name"] == (
        f"docker.io/library/{image.name}"
    )
    assert config["User"] == "65532:65532"
    assert found["architecture"] in archive.name
    assert option in buildah(tmp_path, *run, *config["Entrypoint"], "--help")
    if image == SERVE:
        # Its compiled packages load, and it may write its state.
        compiled = "import bcrypt, cryptography, lupa, msgspec, pydantic, re2, yaml"
        buildah(tmp_path, *run, "python", "-c", f"{compiled}; open('/state/written', 'x')")
        assert "clusterprofiles" in buildah(tmp_path, *run, "bellhop", "install", "crds", "--print")


def _member(archive: Path, name: str) -> bytes:
    with tarfile.open(archive) as opened:
        member = opened.extractfile(name)
        assert member
        return member.read()


def test_says_how_to_go_on_without_the_image(
    checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without its base, and without buildah, a user hears which and how to leave it out."""
    made = check_out(checkout)
    monkeypatch.setenv("BASE", f"oci-archive:{tmp_path / 'none.tar'}")

    with pytest.raises(PermanentError, match=r"(?s)buildah failed: .*none\.tar.*set IMAGE=no"):
        build_image(FORWARDER, made)
    monkeypatch.setenv("PATH", _only(tmp_path / "bin", "git"))
    with pytest.raises(MissingError, match="buildah is not on PATH; install it, or set IMAGE=no"):
        build_image(SERVE, made)


def _only(folder: Path, program: str) -> str:
    """Make a PATH with one program."""
    folder.mkdir()
    found = shutil.which(program)
    assert found
    (folder / program).symlink_to(found)
    return str(folder)


def test_packages_unpack_to_where_examples_look(tmp_path: Path) -> None:
    """Beside the modules, into `dist` of the same folder; the same bytes each time."""
    made = Checkout(root=ROOT, version="1.2.3", time=1_700_000_000, tagged=False)
    files = {"one.zip": b"1", "SHA256SUMS": b"2"}
    content = packed(made, "dist/aws", files)
    (tmp_path / "aws.tar").write_bytes(content)
    with tarfile.open(tmp_path / "aws.tar") as opened:
        opened.extractall(tmp_path, filter="data")

    assert (tmp_path / "bellhop-1.2.3/dist/aws/one.zip").read_bytes() == b"1"
    assert packed(made, "dist/aws", dict(reversed(files.items()))) == content


def test_the_wheel_works_where_no_checkout_is(
    installed: Path, other_checkout: Mapping[str, str], tmp_path: Path
) -> None:
    """In an empty environment and folder: both names, examples with CEL, and all modules load."""

    def run(program: str, *arguments: str) -> str:
        done = subprocess.run(
            [installed / program, *arguments],
            cwd=tmp_path,
            env=other_checkout,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    shutil.copytree(ROOT / "docs/examples/welcome", tmp_path / "welcome")
    shutil.copytree(ROOT / "docs/examples/cel", tmp_path / "cel")
    (tmp_path / "shop.yaml").write_text(NAMESPACE)
    place = ("--object", "shop.yaml", "--cluster", "prod/eu-1,env=production")

    assert run("bellhop", "--version") == f"bellhop {__version__}\n"
    assert "\n  serve " in run("bellhop-fleet", "--help")
    assert 'team: "web"' in run("bellhop", "render", "-f", "welcome", *place)
    run("bellhop", "apply", "-f", "welcome", "-f", "cel")
    assert "welcome-team" in run("bellhop", "explain", "trigger", "welcome-team")
    assert run("python", "-c", IMPORT_ALL) == "[]\n"


def await_serving(process: Process) -> None:
    """Wait until a process says that it serves."""
    eventually(
        process.last_words,
        lambda: (
            process.returncode() is not None or '"Bellhop serves"' in process.log_path.read_text()
        ),
        patience=60,
    )
    assert process.returncode() is None, process.last_words()


def test_the_wheel_serves(
    installed: Path, other_checkout: Mapping[str, str], tmp_path: Path
) -> None:
    """The embedded mode needs no extra, and ends when it is asked to."""
    log = tmp_path / "serve.log"
    with Nursery() as nursery:
        command = [installed / "bellhop", "serve", "--listen", "127.0.0.1:0"]
        process = nursery.start(command, log, cwd=tmp_path, env=other_checkout)
        await_serving(process)
        os.killpg(process.pid, signal.SIGINT)
        assert process.wait(60) in {0, 130}, process.last_words()


def test_the_page_installs_what_is_released(
    released: Path, other_checkout: Mapping[str, str], tmp_path: Path
) -> None:
    """Every line of it is typed into one shell, and shows what the page says.

    uv installs the dependencies: pip takes a minute for them, each time.
    """
    (wheel,) = released.glob("*.whl")
    given = {**other_checkout, "PATH": f"{sys.base_prefix}/bin:/usr/bin:/bin"}
    with Terminal(given, released.parents[1]) as terminal:
        for line in typed(ROOT / "docs/how-to/install.md"):
            if "/pip install " in line.command:
                install_dependencies(tmp_path / "home" / "bellhop", wheel)
            terminal.follow(line)
    shutil.rmtree(tmp_path / "home")


def test_the_first_event_of_what_is_released(
    installed: Path,
    other_checkout: Mapping[str, str],
    tmp_path: Path,
    source_cluster: Cluster,
    destination_cluster: Cluster,
    control_plane_binaries: Binaries,
) -> None:
    """The tutorial in an empty folder: the wheel, two kubeconfigs, an event, and nothing is left.

    It takes long: every command of the page starts a process of its own.
    """
    page = ROOT / "docs/tutorial/two-clusters.md"
    kubectl = control_plane_binaries.kubectl
    assert kubectl, "the tutorial needs kubectl"
    folder = tmp_path / "empty"
    folder.mkdir()
    source_cluster.kubeconfig(folder / "one.kubeconfig")
    destination_cluster.kubeconfig(folder / "two.kubeconfig")
    for name, text in re.findall(r"```yaml file=(\S+)\n(.*?)```", page.read_text(), re.DOTALL):
        (folder / name).write_text(text)
    given = {**other_checkout, "PATH": f"{installed}:{kubectl.parent}:/usr/bin:/bin"}
    with Nursery() as nursery, Terminal(given, folder) as terminal:
        log = tmp_path / "serve.log"
        command = [installed / "bellhop", "serve", "--listen", "127.0.0.1:0"]
        process = nursery.start(command, log, cwd=folder, env=given)
        await_serving(process)
        for line in typed(page):
            terminal.follow(line)


def test_the_unit_runs_what_is_installed() -> None:
    """Where the page installs to, with options that the command takes, and with its own state."""
    text = (ROOT / "infra/serve/bellhop.service").read_text()
    unit = configparser.ConfigParser(strict=True)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read_string(text)
    program, name, *options = unit["Service"]["ExecStart"].split()
    page = (ROOT / "docs/how-to/install.md").read_text()

    assert f"{Path(program).parent}/pip install" in page
    assert f"useradd --system --home-dir /var/lib/bellhop {unit['Service']['User']}\n" in page
    assert "BELLHOP_STATE=/var/lib/bellhop" in unit["Service"]["Environment"].split()
    assert unit["Service"]["StateDirectory"] == "bellhop"
    _accepts(name, options)


def _accepts(name: str, options: list[str]) -> None:
    context = click.Context(cli)
    command = cli.get_command(context, name)
    assert command
    assert command.make_context(name, options, parent=context).params["advertise"]


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A checkout with a changelog."""
    folder = tmp_path / "small"
    folder.mkdir()
    (folder / "CHANGELOG.md").write_text(
        "# Changelog\n\n## Unreleased\n\n- Two.\n\n## 0.0.1\n\n- One.\n"
    )
    git(folder, "init", "--quiet")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "one")
    return folder


def test_refuses_what_is_not_committed(small: Path) -> None:
    """A file that git does not know would be in this build only."""
    (small / "more.py").touch()

    with pytest.raises(InvalidError, match=r"1 files are not committed, such as 'more.py'; commit"):
        check_out(small)


def test_refuses_a_folder_that_is_no_checkout(tmp_path: Path) -> None:
    """The sentence ends with git's own words."""
    with pytest.raises(MissingError, match=r"git cannot read it: .*not a git repository"):
        check_out(tmp_path)


def test_refuses_without_git(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is the only program that is not in the virtual environment."""
    monkeypatch.setenv("PATH", str(small))

    with pytest.raises(MissingError, match="git is not on PATH; install it"):
        check_out(small)


def test_notes_are_the_section_of_the_version(small: Path) -> None:
    """Of a version that is not tagged yet, they are what will be its section."""
    assert notes(check_out(small, "0.0.1")) == "# Bellhop 0.0.1\n\nThe first release.\n\n- One.\n"
    assert notes(check_out(small, "0.0.2")) == "# Bellhop 0.0.2\n\n- Two.\n"


def test_a_tag_has_its_version_and_its_section(small: Path) -> None:
    """A tag of another version, or one that the changelog does not know, is no release."""
    git(small, "tag", "v0.0.2")

    with pytest.raises(InvalidError, match=r"cannot release v0.0.2: .*__version__ is 0.0.1; tag"):
        check_out(small, "0.0.1")
    with pytest.raises(MissingError, match=r"CHANGELOG.md has no section `## 0.0.2`; rename"):
        notes(check_out(small, "0.0.2"))
