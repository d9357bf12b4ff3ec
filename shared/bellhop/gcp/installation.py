"""The whole installation on Google Cloud, for what registers clusters anew."""

from __future__ import annotations

from bellhop.cloud.installation import whole
from bellhop.fleet.installation import Installation
from bellhop.gcp.access import access_of, secrets_of
from bellhop.gcp.resources import Resources


def installation(here: Resources) -> Installation:
    """Make an installation of a function's resources."""
    secrets = secrets_of(here)
    return whole(here, secrets, access_of(here, secrets))
