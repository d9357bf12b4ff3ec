"""`bellhop serve`: the embedded mode, in the foreground."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bellhop.cli.command import Command
from bellhop.cli.output import say
from bellhop.cli.session import state_folder
from bellhop.errors import InvalidError

if TYPE_CHECKING:
    from bellhop.runtime.embedded.consumer import Scraping

_WILDCARDS = ("", "0.0.0.0", "::")  # noqa: S104 - to recognize them, not to bind them
_HIGHEST_PORT = 65535
_SCRAPED = "127.0.0.1:9464"
_LABELS = frozenset({"cluster", "profile", "promotion"})
_OFTEN = (700, 10, 10)
"""Python's own thresholds of garbage collection: this command runs for months."""


@click.command(
    "serve",
    cls=Command,
    examples=(
        "bellhop serve",
        "bellhop serve --listen 0.0.0.0:8443 --advertise https://10.0.0.5:8443",
        "bellhop serve --metrics 127.0.0.1:9464",
        "bellhop serve --metrics 127.0.0.1:9464 --metrics-labels cluster,profile",
        "bellhop serve --advertise https://bellhop.bellhop.svc:8443 --own-cluster mgmt/mgmt",
    ),
)
@click.option(
    "--listen",
    default="127.0.0.1:8443",
    show_default=True,
    metavar="HOST:PORT",
    help="Where to listen; port 0 takes a free one.",
)
@click.option(
    "--advertise",
    default="",
    metavar="URL",
    help="The address for clusters, if it is not the listener's own; required with 0.0.0.0.",
)
@click.option(
    "--metrics",
    default="",
    metavar="HOST:PORT",
    help="Where Prometheus may scrape /metrics, over plain HTTP and without a login; nowhere by"
    " default.",
)
@click.option(
    "--metrics-labels",
    default="",
    metavar="NAMES",
    help="Also serve metrics that name each cluster, profile or promotion, as in cluster,profile."
    " At most 1000 of each.",
)
@click.option(
    "--own-cluster",
    default="",
    metavar="NAMESPACE/NAME",
    help="In a pod: register its cluster under this name, and open it by the pod's service account;"
    " no kubeconfig is stored. One that is registered is left unchanged.",
)
@click.option(
    "--certificate",
    metavar="FOLDER",
    type=click.Path(path_type=Path),
    help="Certificate of the listener: tls.crt, tls.key and, for a private authority, ca.crt, read"
    " again each hour. By default it is made by an authority in the state folder.",
)
def command(
    listen: str,
    advertise: str,
    metrics: str,
    metrics_labels: str,
    own_cluster: str,
    certificate: Path | None,
) -> None:
    """Run every stage, over a state folder, until it is stopped.

    On Ctrl-C and SIGTERM it finishes the work in flight. Logs go to standard output as JSON; one
    line on standard error reports when it is ready. If the state folder is deleted or replaced
    while it runs, it ends within a second with an error: writes to the deleted files would be lost,
    and another `bellhop serve` could start beside it.
    """
    host, port = _read_address(listen, "127.0.0.1:8443")
    if host in _WILDCARDS and not advertise:
        raise InvalidError(
            f"cannot serve on '{listen}' without --advertise: clusters need an address to send to"
        )
    if advertise and not advertise.startswith("https://"):
        raise InvalidError(f"advertise https://HOST:PORT, not '{advertise}': only https is served")
    scraping = _read_metrics(metrics, metrics_labels)
    if own_cluster:
        from bellhop.runtime.embedded.own_cluster import check_own_cluster

        check_own_cluster(own_cluster)
    from bellhop.runtime.embedded.serve import serve

    gc.set_threshold(*_OFTEN)
    state = state_folder()

    def announce(url: str) -> None:
        say(f"Bellhop is ready at {url}; its state is in '{state}'.", err=True)

    serve(
        state,
        host=host,
        port=port,
        advertise=advertise,
        metrics=scraping,
        own_cluster=own_cluster,
        certificate=certificate,
        announce=announce,
    )


def _read_metrics(metrics: str, labels: str) -> Scraping | None:
    """Return the address and labels of metrics; None without an address."""
    names = [each.strip() for each in labels.split(",") if each.strip()]
    if unknown := sorted(set(names) - _LABELS):
        raise InvalidError(
            f"cannot serve metrics with the label '{unknown[0]}': use cluster, profile or promotion"
        )
    if not metrics:
        if names:
            raise InvalidError(
                f"cannot use --metrics-labels without an address: add --metrics {_SCRAPED}"
            )
        return None
    host, port = _read_address(metrics, _SCRAPED)
    if not host:
        raise InvalidError(
            f"cannot serve metrics on '{metrics}': name the address, as in {_SCRAPED}; 0.0.0.0 lets"
            " everybody read them who reaches this machine"
        )
    from bellhop.runtime.embedded.consumer import Scraping

    return Scraping(host, port, frozenset(names))


def _read_address(listen: str, example: str) -> tuple[str, int]:
    host, colon, port = listen.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > _HIGHEST_PORT:
        raise InvalidError(f"cannot listen on '{listen}': write HOST:PORT, as in {example}")
    return host.strip("[]"), int(port)
