"""A role is assumed when it is needed, and again before its credentials end."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import partial

from bellhop.adapters.aws.services import SESSION, Services, provider_of
from tests.aws_fixtures import Asked
from tests.lab.moto import ACCESS_KEY, REGION, SECRET_KEY, Moto

ROLE = "arn:aws:iam::123456789012:role/operator"


class Hand:
    """A clock's hand that a test moves."""

    def __init__(self) -> None:
        self.at = datetime.now(UTC)

    def __call__(self) -> datetime:
        return self.at


def test_a_session_is_renewed_before_its_hour_ends(hurried: Services, asked: Asked) -> None:
    """What it gives is kept until then: a command of a second asks once."""
    hand = Hand()
    assume = partial(hurried.call, "sts", "assume_role", doing="assume a role")
    credentials = provider_of(ROLE, assume, now=hand).load_credentials()
    assert asked() == {}
    first = credentials.get_frozen_credentials()
    hand.at += timedelta(minutes=40)
    assert credentials.get_frozen_credentials() == first
    assert asked() == {"sts:POST": 1}
    hand.at += timedelta(minutes=11)

    assert credentials.get_frozen_credentials().access_key != first.access_key
    assert asked() == {"sts:POST": 1}


def test_all_is_called_by_the_role(moto: Moto) -> None:
    """The credentials that assume it are used for nothing else."""
    keys = ACCESS_KEY, SECRET_KEY
    services = Services(region=REGION, endpoint=moto.url, keys=keys, role=ROLE)
    who = services.call("sts", "get_caller_identity", {}, doing="ask who calls")
    services.close()

    assert who["Arn"] == f"arn:aws:sts::123456789012:assumed-role/operator/{SESSION}"
