"""`bellhop sender`, over a state folder whose address is known."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from bellhop.ingest import signatures
from bellhop.ingest.handler import Ingest
from bellhop.ingest.http import Caller, Response
from bellhop.installation import Installation
from bellhop.logs import Log
from bellhop.state.cluster import Cluster
from tests.fakes.kept import value_of
from tests.unit.cli.conftest import Bellhop

KEY = "prod/eu-1"
URL = "https://ingest.example:8443"
ADDRESS = f"{URL}/clusters/{KEY}/senders/ci"


@pytest.fixture
def house(here: Installation, state: Path) -> Installation:
    """An installation with a cluster, which has been served."""
    cluster = Cluster("prod", "eu-1", {}, "v1.30.0", "digest", here.records.clock.now())
    here.declare.register(cluster)
    here.records.gates.put(KEY, cluster.gate((), 0, ()))
    (state / "address.json").write_text(json.dumps({"url": URL, "ca": "PEM"}))
    return here


def admits(here: Installation, token: str) -> bool:
    """Say whether ingest lets a token in."""
    ingest = Ingest(here.records, here.publisher, here.settings, Log(io.StringIO()))
    return not isinstance(ingest.admit(Caller(KEY, token, "ci")), Response)


def shown(output: str, label: str) -> str:
    """Return what stands behind a label."""
    return next(line.split()[1] for line in output.splitlines() if line.split()[:1] == [label])


def test_adds_a_sender_and_shows_its_token_once(bellhop: Bellhop, house: Installation) -> None:
    added = bellhop("sender", "add", KEY, "ci")
    assert added.exit_code == 0, added.output
    token = shown(added.stdout, "token")

    assert f"Sender 'ci' may send CloudEvents for cluster '{KEY}'." in added.stdout
    assert shown(added.stdout, "address") == ADDRESS
    assert admits(house, token)
    for form in ("table", "wide", "json", "yaml"):
        listed = bellhop("sender", "list", "-o", form)
        assert "ci" in listed.stdout
        assert token not in listed.output


def test_adds_and_rotates_for_a_program(
    bellhop: Bellhop, house: Installation, tmp_path: Path
) -> None:
    """As one object with the secret, or with the file that has it and without the secret."""
    added = json.loads(bellhop("sender", "add", KEY, "ci", "-o", "json").stdout)
    file = tmp_path / "ci.token"
    how = ("--file", str(file), "-o", "json")
    rotated = json.loads(bellhop("sender", "rotate", KEY, "ci", *how).stdout)

    assert (added["cluster"], added["name"], added["proof"]) == (KEY, "ci", "token")
    assert (added["address"], added["authority"], added["formerUntil"]) == (ADDRESS, "PEM", None)
    assert admits(house, added["secret"])
    assert admits(house, file.read_text().strip())
    assert (rotated["file"], "secret" in rotated) == (str(file), False)
    assert rotated["formerUntil"] > rotated["since"]


def test_lists_senders(bellhop: Bellhop, house: Installation) -> None:
    """With how they prove themselves; the authority to trust is for programs."""
    assert bellhop("sender", "list").stderr.strip() == "No senders found."
    bellhop("sender", "add", KEY, "ci")
    bellhop("sender", "add", KEY, "store", "--hmac")
    rows = json.loads(bellhop("sender", "list", KEY, "-o", "json").stdout)

    assert [(each["name"], each["proof"], each["refused"]) for each in rows] == [
        ("ci", "token", 0),
        ("store", "hmac", 0),
    ]
    assert (rows[0]["address"], rows[0]["authority"]) == (ADDRESS, "PEM")
    assert value_of(house.records.senders.get(KEY, "store")).signs
    table = bellhop("sender", "list", "--no-headers").stdout.splitlines()
    assert [line.split()[:3] for line in table] == [[KEY, "ci", "token"], [KEY, "store", "hmac"]]


def test_writes_a_secret_into_a_file_and_shows_it_nowhere(
    bellhop: Bellhop, house: Installation, tmp_path: Path
) -> None:
    file = tmp_path / "store.key"
    added = bellhop("sender", "add", KEY, "ci", "--hmac", "--file", str(file))
    secret = file.read_text().strip()

    assert added.exit_code == 0, added.output
    assert secret.startswith(signatures.PREFIX)
    assert secret not in added.output
    assert f"in {file}" in added.stdout
    assert file.stat().st_mode & 0o777 == 0o600
    again = bellhop("sender", "rotate", KEY, "ci", "--file", str(file))
    assert again.exit_code == 2
    assert "File exists; name a file that is not there yet" in again.stderr
    assert file.read_text().strip() == secret
    assert value_of(house.records.senders.get(KEY, "ci")).proof == secret


def test_a_secret_that_is_not_used_leaves_no_file(
    bellhop: Bellhop, house: Installation, tmp_path: Path
) -> None:
    """A sender that is there already keeps its secret, and the file with another one goes."""
    bellhop("sender", "add", KEY, "ci")
    before = value_of(house.records.senders.get(KEY, "ci"))
    file, nowhere = tmp_path / "new", tmp_path / "none" / "new"
    taken = bellhop("sender", "add", KEY, "ci", "--file", str(file))
    missing = bellhop("sender", "add", KEY, "other", "--file", str(nowhere))

    assert (taken.exit_code, missing.exit_code) == (1, 2)
    assert not file.exists()
    assert "No such file or directory" in missing.stderr
    assert value_of(house.records.senders.get(KEY, "ci")) == before
    assert house.records.senders.get(KEY, "other") is None


def test_rotates_without_a_gap_or_at_once(bellhop: Bellhop, house: Installation) -> None:
    """Both count for a day; a third is refused until then, unless both are to end."""
    first = shown(bellhop("sender", "add", KEY, "ci").stdout, "token")
    rotated = bellhop("sender", "rotate", KEY, "ci")
    second = shown(rotated.stdout, "token")
    refused = bellhop("sender", "rotate", KEY, "ci")

    assert "former       counts until 2" in rotated.stdout
    assert (refused.exit_code, "give --at-once" in refused.stderr) == (75, True)
    assert (admits(house, first), admits(house, second)) == (True, True)
    ended = bellhop("sender", "rotate", KEY, "ci", "--at-once")
    third = shown(ended.stdout, "token")
    assert "former       counts no more" in ended.stdout
    assert [admits(house, each) for each in (first, second, third)] == [False, False, True]


def test_removes_a_sender(bellhop: Bellhop, house: Installation) -> None:
    """Once; a second time there is none, and it is said where those are that there are."""
    token = shown(bellhop("sender", "add", KEY, "ci").stdout, "token")
    removed = bellhop("sender", "remove", KEY, "ci")
    again = bellhop("sender", "remove", KEY, "ci")

    assert removed.stdout == f"Sender 'ci' of cluster '{KEY}' removed.\n"
    assert not admits(house, token)
    assert (again.exit_code, "`bellhop sender list` lists" in again.stderr) == (1, True)
