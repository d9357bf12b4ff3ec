"""Receivers of a promotion's notifications: the types of which its Secret has the keys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from bellhop.api.health_check import SECRET_KEYS
from bellhop.api.manifest import Secret
from bellhop.api.promotion import ClusterPromotion
from bellhop.api.promotion_annotations import KUBERNETES_EVENT, NOTIFY
from bellhop.catalog.cache import Catalogs
from bellhop.errors import InvalidError, MissingError


class Receivers(NamedTuple):
    """Types of notifications, and the Secret that says where each goes."""

    types: Sequence[str]
    secret: Mapping[str, str] = {}


def read_receivers(catalogs: Catalogs, promotion: ClusterPromotion) -> Receivers:
    """Return the receivers that a promotion's annotation names.

    Raises:
        InvalidError: its Secret has no key that a type needs.
        MissingError: its Secret was not applied.
    """
    if promotion.notify == KUBERNETES_EVENT:
        return Receivers([KUBERNETES_EVENT])
    namespace, _, name = promotion.notify.partition("/")
    holder = catalogs.holder("Secret", namespace, name)
    said = f"cannot notify of promotion '{promotion.name}'"
    if not isinstance(holder, Secret):
        raise MissingError(
            f"{said}: there is no Secret '{promotion.notify}', which its annotation {NOTIFY} names;"
            " apply it"
        )
    secret = {key: value.decode("utf-8", "replace") for key, value in holder.decoded().items()}
    types = [each for each, key in SECRET_KEYS.items() if secret.get(key)]
    if not types:
        raise InvalidError(
            f"{said}: the Secret '{promotion.notify}' has none of the keys"
            f" {', '.join(SECRET_KEYS.values())}; put in those of a type of notifications"
        )
    return Receivers(types, secret)
