"""Build all files of a release into `dist/release`; SHA256SUMS comes last and lists them all.

bellhop_fleet-VERSION-….whl, .tar.gz   what pip installs
bellhop-VERSION-terraform.tar.gz       the modules, the packages' sources, and all examples
bellhop-VERSION-aws.tar, -gcp.tar      the packages of functions, as `make package` builds them
bellhop-VERSION-….oci.tar              the image of `serve`, and bellhop-forwarder-VERSION-….oci.tar
bellhop-VERSION.tgz                    the Helm chart, and bellhop-forwarder-VERSION.tgz
bellhop-VERSION.cdx.json               the dependencies, in CycloneDX
bellhop-VERSION.md                     the notes, from the changelog
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from infra.charts.build import BELLHOP, FORWARDER, pack_chart
from infra.charts.build import archive_name as chart_name
from infra.package.build import build
from infra.package.sources import lay_out
from infra.package.zips import SUMS, filled
from infra.release.archives import modules, packed
from infra.release.bom import bill_of_materials
from infra.release.checkout import Checkout, check_out
from infra.release.distribution import distribution
from infra.release.image import IMAGES, archive_name, build_image
from infra.release.notes import notes

_CLOUDS = {"aws": build, "gcp": lay_out}


def release(dist: Path, *, packages: bool = True, image: bool = True) -> Sequence[Path]:
    """Build the files in place of those of an earlier release, and return them.

    Packages are built into `dist/aws` and `dist/gcp`, too.

    Raises:
        InvalidError: the checkout is not clean, or is tagged as another version.
        MissingError: a program is missing, or the changelog's section.
        PermanentError: uv or buildah cannot build or resolve.
    """
    checkout = check_out()
    with filled(dist / "release") as folder:
        files = [folder.put(name, content) for name, content in _contents(checkout)]
        if image:
            files += [
                folder.put(archive_name(each, checkout), build_image(each, checkout))
                for each in IMAGES
            ]
        if packages:
            for cloud in _CLOUDS:
                content = _packages(checkout, cloud, dist)
                files.append(folder.put(f"{checkout.name}-{cloud}.tar", content))
    return [*files, dist / "release" / SUMS]


def _contents(checkout: Checkout) -> Iterator[tuple[str, bytes]]:
    yield f"{checkout.name}.md", notes(checkout).encode()
    yield from distribution(checkout).items()
    yield f"{checkout.name}-terraform.tar.gz", modules(checkout)
    for chart in (BELLHOP, FORWARDER):
        yield chart_name(chart), pack_chart(chart, checkout.time)
    yield f"{checkout.name}.cdx.json", bill_of_materials(checkout)


def _packages(checkout: Checkout, cloud: str, dist: Path) -> bytes:
    made = _CLOUDS[cloud](dist / cloud)
    paths = [*made.values(), dist / cloud / SUMS]
    return packed(checkout, f"dist/{cloud}", {path.name: path.read_bytes() for path in paths})
