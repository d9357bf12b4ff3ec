"""From the options of `bellhop register` to the registration of one cluster."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import click

from bellhop.cli import session
from bellhop.cli.output import say
from bellhop.cli.registration_options import RegistrationOptions
from bellhop.errors import InvalidError, MissingError

if TYPE_CHECKING:
    from bellhop.clusters.kubeconfig import Kubeconfig
    from bellhop.installation.installation import Inbound, Installation
    from bellhop.registration.registration import Registration

_LARGEST_AUTHORITY = 64 * 1024
"""Bytes of the authority for --ingest-url: it is kept with the cluster, in one item."""


def specified(
    here: Installation, place: tuple[str, str], kubeconfig: Kubeconfig, wishes: RegistrationOptions
) -> Registration:
    """Return the registration of a cluster with what its options say whatever cluster it is.

    Raises:
        MissingError: it is to send events, and nobody knows where.
        InvalidError: the image is none, or the API server sends its audit log and no option says
            where its files are; nothing is changed yet.
    """
    from bellhop.installation.installation import Inbound
    from bellhop.registration.registration import Registration

    stored = here.records.clusters.get("/".join(place))
    sender = stored.value.forwarder if stored else {}
    if stored:
        wishes = wishes.resolve_sender(stored.value.key, sender)
    inbound = _inbound(here, wishes.ingest_url, wishes.ingest_ca)
    if wishes.ingest_url is None and sender.get("ingest-url"):
        inbound = Inbound(sender["ingest-url"], sender.get("ingest-ca", ""))
    if wishes.sends and not inbound.url:
        raise MissingError(
            f"cannot register cluster '{'/'.join(place)}': no ingest URL is known yet;"
            f" {here.worker.start} first, or give --ingest-url"
        )
    spec = Registration(
        *place,
        kubeconfig,
        labels=None,
        inbound=inbound,
        forwarder_url=wishes.forwarder_url,
        forwarder=wishes.sends,
        twice=wishes.allow_twice,
        take_over=wishes.take_over,
        install=wishes.installs,
        image=wishes.image,
        direct=wishes.direct,
        audit=wishes.audit,
    )
    spec.manifests()
    return spec


def warn_of_silence(here: Installation, inbound: Inbound) -> None:
    """Warn where events go to the installation's own address, and nothing answers there."""
    url = here.inbound.url
    if not url or inbound != here.inbound or session.answers(here.inbound):
        return
    cure = f"{here.worker.start}: nothing is taken in meanwhile"
    if session.serves(here):
        cure = f"{here.worker.busy}, so see whether clusters reach that address"
    say(f"warning: nothing answers at {url}; {cure}", err=True)


def _inbound(here: Installation, url: str | None, ca: Path | None) -> Inbound:
    from bellhop.adapters.local.files import read_at_most
    from bellhop.installation.installation import Inbound

    if ca is not None and url is None:
        raise click.UsageError("--ingest-ca belongs to --ingest-url")
    if url is None:
        return here.inbound
    if not url.startswith("https://"):
        raise InvalidError(
            f"cannot use --ingest-url '{url}': a token is sent there, so it must be https"
        )
    try:
        urlsplit(url).port  # noqa: B018 - it is read to be judged
    except ValueError as error:
        raise InvalidError(
            f"cannot use --ingest-url '{url}': its host or port is invalid"
        ) from error
    try:
        return Inbound(url, read_at_most(ca, _LARGEST_AUTHORITY).decode() if ca else "")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidError(f"cannot read the authority '{ca}'") from error
