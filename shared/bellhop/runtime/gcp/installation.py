"""The whole installation on Google Cloud, for what registers clusters anew."""

from __future__ import annotations

from bellhop.installation.installation import Installation
from bellhop.runtime.cloud.installation import whole
from bellhop.runtime.gcp.access import access_of, secrets_of
from bellhop.runtime.gcp.resources import Resources


def installation(here: Resources) -> Installation:
    """Make an installation of a function's resources."""
    secrets = secrets_of(here)
    return whole(here, secrets, access_of(here, secrets))
