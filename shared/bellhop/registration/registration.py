"""Registration of a cluster.

  inspect: reachable? which cluster? which version? which permissions?   nothing is changed yet
  in the cluster: namespace, account, role, if requested pods            harmless: no event is sent
  here: kubeconfig, then the record, `begun`                             the token is accepted
  in the cluster: the Secret                                             `instructions.py` shows how
  here: the record, `told`                                               a renewal does it gaplessly

The record precedes the Secret, so that no forwarder ever has a token without a record. A killed
registration leaves the mark `begun`, and renewal finishes it. Of two at once one loses the
conditional write of the record, and has to wait. Deregistration is in reverse order:
`removal.py`.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

from bellhop.adapters.kube.client import KubeClient
from bellhop.clusters.kubeconfig import sanitise
from bellhop.errors import (
    BellhopError,
)
from bellhop.installation import Installation
from bellhop.registration.attempt import RegistrationAttempt
from bellhop.registration.request import LostRaceError, Pause, Registered, Registration, busy_error

_TRIES = 3


def register(here: Installation, spec: Registration, *, pause: Pause = time.sleep) -> Registered:
    """Register a cluster, or renew it: credentials, labels, token, and the forwarder's certificate.

    Raises:
        InvalidError: this installation does not call its address.
        UnreachableError: the cluster does not answer; nothing is changed.
        DeniedError: permissions are missing; nothing is changed.
        ConflictError: it is registered under another name, or by another installation; nothing is
            changed.
        BusyError: another process registers it.
        MissingError: the cluster to renew was deregistered; nothing is changed.
    """
    # A renewal uses the stored one, and the kubeconfig of a cloud's cluster is no user's file.
    with nullcontext() if spec.renews is not None or spec.managed else reword_errors():
        return _register(here, spec, pause)


def _register(here: Installation, spec: Registration, pause: Pause) -> Registered:
    sanitise(spec.kubeconfig.to_dict(), reach=here.reach)
    kube = KubeClient(spec.key, spec.kubeconfig, reach=here.reach)
    try:
        for _ in range(_TRIES):
            attempt = RegistrationAttempt(here, spec, kube, pause)
            try:
                return attempt.run()
            except LostRaceError:
                # Its labels were changed, say, since we read it: nothing is done yet.
                continue
        raise busy_error(spec.key, "it keeps being changed by others")
    finally:
        kube.close()


@contextmanager
def reword_errors() -> Iterator[None]:
    """Word errors for a kubeconfig that was given now, and is not stored yet."""
    try:
        yield
    except BellhopError as error:
        given = error.context.get("given")
        if not given:
            raise
        raise type(error)(str(given)) from error
