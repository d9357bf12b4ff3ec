"""Application of a status, also where the definition of its kind has no conditions.

Sveltos' definitions have neither `conditions` nor `observedGeneration`, and an API server refuses
a whole status because of one field that its definition does not declare.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from bellhop.errors import InvalidError
from bellhop.ports.clock import Clock
from bellhop.ports.kube import Kube, Manifest

_CONDITIONS, _GENERATION = "conditions", "observedGeneration"
_REMEMBERED = timedelta(minutes=10)
"""Time for which a kind counts as one without conditions: its definition may be replaced."""


class StatusApplier:
    """Applies statuses, with conditions where they are declared."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._bare: dict[str, datetime] = {}

    def apply(self, kube: Kube, manifest: Manifest, uid: str) -> None:
        """Apply the status in a manifest to the object with a `uid`.

        Raises:
            StaleError: another object of its name is there, or none.
            InvalidError: the API server refuses it, also without conditions.
        """
        kind, now = manifest["kind"], self._clock.now()
        if kind in self._bare and abs(now - self._bare[kind]) < _REMEMBERED:
            manifest = _omit_conditions(manifest)
        try:
            kube.apply_status(manifest, uid=uid)
        except InvalidError:
            if _CONDITIONS not in manifest["status"]:
                raise
            kube.apply_status(_omit_conditions(manifest), uid=uid)
            self._bare[kind] = now


def _omit_conditions(manifest: Manifest) -> Manifest:
    status = manifest["status"].items()
    kept = {name: each for name, each in status if name not in (_CONDITIONS, _GENERATION)}
    return {**manifest, "status": kept}
