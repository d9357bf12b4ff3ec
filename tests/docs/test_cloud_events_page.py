"""The page on CloudEvents: its files are made, its commands run, and they print what it shows."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path

import pytest

from bellhop.forwarder.nats import sender
from bellhop.forwarder.nats.consumer import DURABLE
from bellhop.forwarder.nats.secret import PLACE, parse
from bellhop.ingest import signatures
from bellhop.ingest.records import REMEMBERED
from bellhop.registration import senders
from bellhop.rendering.cloud_events import BATCH, LONGEST, MOST_EVENTS, STRUCTURED
from bellhop.runtime.embedded.state import open_state
from bellhop.settings import Settings
from bellhop.state.cluster import Cluster
from tests.docs.typed import type_page

PAGE = (Path(__file__).parents[2] / "docs/how-to/receive-cloudevents.md").read_text()


def test_every_command_prints_what_stands_below_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader who saves the files and types the commands sees what the page shows."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BELLHOP_STATE", str(tmp_path / "state"))
    opened = open_state(tmp_path / "state", Settings())
    now = opened.installation.records.clock.now()
    opened.installation.declare.register(Cluster("fleet", "east", {}, "v1.30.0", "digest", now))
    opened.close()
    address = json.dumps({"url": "https://bellhop.example", "ca": ""})
    (tmp_path / "state" / "address.json").write_text(address)
    type_page(PAGE, tmp_path)


def test_names_the_limits_that_hold() -> None:
    """Types of content, sizes and times are those of the code."""
    assert f"`{STRUCTURED}`" in PAGE
    assert f"up to {MOST_EVENTS} as `{BATCH}`" in PAGE
    assert f"up to {LONGEST:,} characters" in PAGE
    assert signatures.WINDOW.total_seconds() == 5 * 60
    assert "valid for five minutes" in PAGE
    assert senders.OVERLAP.days == 1
    assert "stays valid for a day" in PAGE
    assert REMEMBERED.days == 30
    assert "known for thirty days" in PAGE


def test_shows_a_secret_of_nats_that_is_followed() -> None:
    """Both kinds of servers, with only a reader's changes."""
    [text] = re.findall(r"```json file=nats.json\n(.*?)```", PAGE, re.DOTALL)
    core, jetstream = parse({"data": {"sveltos-nats": base64.b64encode(text.encode())}})

    assert core.subjects == ("user-operation", "shop.>")
    assert (core.user, core.password) == ("admin", "…")
    assert [each.name for each in jetstream.streams] == ["ORDERS", "BUILDS"]
    assert f"the Secret `{PLACE}`" in PAGE
    assert f"consumer `{DURABLE}`" in PAGE
    assert f"up to {sender.MOST_EVENTS:,} events or {sender.MOST_BYTES // 2**20} MiB" in PAGE
