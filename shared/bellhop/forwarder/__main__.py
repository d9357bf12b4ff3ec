"""`python -m bellhop.forwarder`: what runs in the pod."""

from __future__ import annotations

import argparse
import gc
import signal
import sys
from pathlib import Path

from bellhop.errors import BellhopError
from bellhop.forwarder.cluster import connect
from bellhop.forwarder.forwarder import Forwarder, Options
from bellhop.logs import Log, configure
from bellhop.registration.forwarder_pods import MOUNTED


def main(arguments: list[str] | None = None) -> int:
    """Run the forwarder until SIGTERM; returns the exit status."""
    given = _parser().parse_args(arguments)
    configure()
    log = Log()
    options = Options(
        listen=given.listen,
        spool=given.spool,
        health=given.health,
        account=given.account_token,
        linger=given.linger,
        grace=given.grace,
    )
    try:
        forwarder = Forwarder(options, connect(given.kubeconfig), log)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: forwarder.stop())
        # What was loaded until here stays for good; collections need not look at it again.
        gc.collect()
        gc.freeze()
        return forwarder.run()
    except BellhopError as error:
        log.warning("The forwarder cannot run", error=str(error))
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bellhop.forwarder", description=__doc__)
    parser.add_argument(
        "--kubeconfig",
        type=Path,
        help="of the cluster to serve; in a pod, its service account is the default",
    )
    parser.add_argument(
        "--listen",
        type=_address,
        default="0.0.0.0:8443",
        help="HOST:PORT of the webhook (default: %(default)s)",
    )
    parser.add_argument(
        "--account-token",
        type=Path,
        default=Path(MOUNTED),
        help="a token of its account that is only for ingest, if there is one"
        " (default: %(default)s)",
    )
    parser.add_argument("--spool", type=Path, required=True, help="a folder that is kept")
    parser.add_argument("--health", type=_address, help="HOST:PORT of probes and metrics, http")
    parser.add_argument(
        "--linger",
        type=float,
        default=0.0,
        help="seconds to accept events after SIGTERM (default: %(default)s)",
    )
    parser.add_argument(
        "--grace",
        type=float,
        default=3.0,
        help="seconds after SIGTERM, lingering included, to send the rest (default: %(default)s)",
    )
    return parser


def _address(text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdigit():
        raise argparse.ArgumentTypeError(f"'{text}' is not HOST:PORT")
    return host.strip("[]"), int(port)


if __name__ == "__main__":
    sys.exit(main())
