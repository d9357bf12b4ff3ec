"""The whole installation on AWS, for what registers clusters anew and resumes declarations."""

from __future__ import annotations

from bellhop.installation.installation import Installation
from bellhop.runtime.aws.access import access_of, secrets_of
from bellhop.runtime.aws.resources import Resources
from bellhop.runtime.cloud.installation import whole


def installation(here: Resources) -> Installation:
    """Make an installation of a function's resources."""
    secrets = secrets_of(here)
    return whole(here, secrets, access_of(here, secrets))
