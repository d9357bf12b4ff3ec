"""The whole installation on AWS, for what registers clusters anew and resumes declarations."""

from __future__ import annotations

from bellhop.aws.access import access_of, secrets_of
from bellhop.aws.resources import Resources
from bellhop.cloud.installation import whole
from bellhop.fleet.installation import Installation


def installation(here: Resources) -> Installation:
    """Make an installation of a function's resources."""
    secrets = secrets_of(here)
    return whole(here, secrets, access_of(here, secrets))
