"""The port of charts in repositories: found however they are written, fetched once, checked."""

from __future__ import annotations

import hashlib
import json
import tarfile
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pytest

from bellhop.adapters.sources.charts.archive import check
from bellhop.adapters.sources.charts.repositories import ChartRepositories
from bellhop.core.address_policy import LOCAL
from bellhop.errors import InvalidError, MissingError, UnauthorizedError, UnreachableError
from bellhop.ports.charts import Archive, Repositories
from bellhop.state.chart import ANONYMOUS, Login, Place
from tests.fakes.chart import packed
from tests.fakes.clock import FakeClock
from tests.fakes.site import Answer, Site
from tests.lab.http_server import Request, Response

ADA = ("ada", "hunter2")
PLAIN = Login(plain=True)
CHART = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def charts(tmp_path: Path, clock: FakeClock) -> ChartRepositories:
    return ChartRepositories(LOCAL, tmp_path / "charts", clock)


@pytest.fixture
def archive(tmp_path: Path) -> bytes:
    return packed(tmp_path).read_bytes()


def repository(archive: bytes, *names: str, digest: bool = True) -> dict[str, Answer]:
    """Return a repository of one chart under several names."""
    entry = {"version": "1.0.0", "urls": ["demo.tgz"], "digest": sha256(archive) * digest}
    entries = {name: [entry] for name in names or ["demo"]}
    index = json.dumps({"apiVersion": "v1", "entries": entries}).encode()
    return {"/index.yaml": index, "/demo.tgz": archive}


def registry(archive: bytes, name: str) -> dict[str, Answer]:
    layer = {"mediaType": CHART, "digest": f"sha256:{sha256(archive)}"}
    return {
        f"/v2/{name}/tags/list": json.dumps({"tags": ["1.0.0"]}).encode(),
        f"/v2/{name}/manifests/1.0.0": json.dumps({"layers": [layer]}).encode(),
        f"/v2/{name}/blobs/sha256:{sha256(archive)}": archive,
    }


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def oci(site: Site) -> str:
    return f"oci://{site.address.partition('//')[2]}"


def test_it_is_the_port(charts: ChartRepositories) -> None:
    port: Repositories = charts
    assert port.find
    assert port.versions


def test_finds_a_chart_in_a_repository(charts: ChartRepositories, archive: bytes) -> None:
    with Site(repository(archive)) as site:
        found = charts.find(Place(site.address, "demo", "1.x"))
        assert charts.versions(Place(site.address, "demo")) == ["1.0.0"]
    assert found == Archive(found.path, "demo", "1.0.0", sha256(archive))
    assert check(found.path.read_bytes(), "it").name == "demo"


@pytest.mark.parametrize(
    ("repository_path", "chart", "name"),
    [
        ("/charts", "demo", "charts/demo"),
        ("/charts/", "demo", "charts/demo"),
        ("/charts/demo", "", "charts/demo"),
        ("/charts/demo", "demo", "charts/demo"),
        ("/demo", "demo", "demo/demo"),
        ("/charts", "oci:", "charts/demo"),
        ("/another", "oci:", "charts/demo"),
    ],
)
def test_finds_a_chart_in_a_registry(
    charts: ChartRepositories, archive: bytes, repository_path: str, chart: str, name: str
) -> None:
    """However a user writes it: with its name twice, once, or as an address of its own."""
    with Site(registry(archive, name)) as site:
        named = f"{oci(site)}/charts/demo" if chart == "oci:" else chart
        place = Place(f"{oci(site)}{repository_path}", named, "1.0.0", PLAIN)
        assert charts.find(place).digest == sha256(archive)
        assert charts.versions(place) == ["1.0.0"]


def test_a_chart_that_is_nowhere_is_missed_where_it_should_be(charts: ChartRepositories) -> None:
    with Site() as site:
        place = Place(f"{oci(site)}/demo", "demo", "1.0.0", PLAIN)
        with pytest.raises(MissingError, match=f"chart 'demo' in '{oci(site)}/demo/demo'"):
            charts.find(place)


@pytest.mark.parametrize("everywhere", [False, True])
def test_credentials_are_for_the_registry_that_is_named(
    charts: ChartRepositories, archive: bytes, *, everywhere: bool
) -> None:
    """A chart that is an address of its own may be on another server."""
    with Site(registry(archive, "demo"), ADA) as site:
        login = Login(*ADA, plain=True, everywhere=everywhere)
        place = Place("oci://registry.example.com", f"{oci(site)}/demo", "1.0.0", login)
        if everywhere:
            assert charts.find(place).chart == "demo"
        else:
            with pytest.raises(UnauthorizedError, match="asks for credentials"):
                charts.find(place)
            assert all("Authorization" not in each.headers for each in site.asked)


def test_an_index_may_lead_to_a_registry(charts: ChartRepositories, archive: bytes) -> None:
    """Some large ones do."""
    with Site(registry(archive, "charts/demo")) as other, Site() as site:
        entry = {"version": "1.0.0", "urls": [f"{oci(other)}/charts/demo:1.0.0"], "digest": "x"}
        site.files["/index.yaml"] = json.dumps({"entries": {"demo": [entry]}}).encode()
        found = charts.find(Place(site.address, "demo", login=Login(*ADA, plain=True)))
    assert found.digest == sha256(archive)
    assert all("Authorization" not in each.headers for each in other.asked)


def test_fifty_releases_ask_once(charts: ChartRepositories, archive: bytes) -> None:
    names = [f"demo-{number}" for number in range(10)]
    with Site(repository(archive, *names)) as site, ThreadPoolExecutor(50) as pool:
        places = [Place(site.address, name, "1.0.0") for name in names * 5]
        found = list(pool.map(charts.find, places))
    assert {each.digest for each in found} == {sha256(archive)}
    assert sorted(site.targets) == ["/demo.tgz", "/index.yaml"]


def test_what_a_repository_says_counts_for_a_minute(
    charts: ChartRepositories, clock: FakeClock, archive: bytes
) -> None:
    """An archive that is known is not fetched again."""
    with Site(repository(archive)) as site:
        place = Place(site.address, "demo")
        charts.find(place)
        clock.advance(timedelta(seconds=59))
        charts.find(place)
        assert site.targets == ["/index.yaml", "/demo.tgz"]
        clock.advance(timedelta(seconds=1))
        charts.find(place)
        assert site.targets == ["/index.yaml", "/demo.tgz", "/index.yaml"]


def test_another_process_finds_what_this_one_fetched(
    charts: ChartRepositories, tmp_path: Path, archive: bytes
) -> None:
    with Site(repository(archive)) as site:
        place = Place(site.address, "demo")
        found = charts.find(place)
        assert ChartRepositories(LOCAL, tmp_path / "charts", FakeClock()).find(place) == found
    assert site.targets.count("/demo.tgz") == 1


def test_a_file_that_was_damaged_is_fetched_again(
    charts: ChartRepositories, archive: bytes
) -> None:
    with Site(repository(archive)) as site:
        place = Place(site.address, "demo")
        path = charts.find(place).path
        content = path.read_bytes()
        path.write_bytes(content[:-1])
        assert charts.find(place).path.read_bytes() == content
        path.unlink()
        assert charts.find(place).path.read_bytes() == content
    assert site.targets.count("/demo.tgz") == 3


def test_an_index_need_not_say_digests(
    charts: ChartRepositories, clock: FakeClock, archive: bytes, tmp_path: Path
) -> None:
    with Site(repository(archive, digest=False)) as site:
        place = Place(site.address, "demo")
        assert charts.find(place) == charts.find(place)
        assert site.targets == ["/index.yaml", "/demo.tgz"]
        changed = packed(tmp_path, more="description: changed\n").read_bytes()
        site.files["/demo.tgz"] = changed
        clock.advance(timedelta(minutes=1))
        assert charts.find(place).digest == sha256(changed)


def test_nobody_gets_by_its_digest_what_another_repository_has(
    charts: ChartRepositories, archive: bytes
) -> None:
    with Site(repository(archive), ADA) as site, Site() as other:
        charts.find(Place(site.address, "demo", login=Login(*ADA)))
        url = f"{site.address}/demo.tgz"
        entry = {"version": "1.0.0", "urls": [url], "digest": sha256(archive)}
        other.files["/index.yaml"] = json.dumps({"entries": {"demo": [entry]}}).encode()
        with pytest.raises(UnauthorizedError):
            charts.find(Place(other.address, "demo"))


@pytest.mark.parametrize("login", [ANONYMOUS, Login("ada", "wrong"), Login("eve", "hunter2")])
def test_what_one_may_read_another_may_not(
    charts: ChartRepositories, archive: bytes, login: Login
) -> None:
    with Site(repository(archive), ADA) as site:
        charts.find(Place(site.address, "demo", login=Login(*ADA)))
        with pytest.raises(UnauthorizedError):
            charts.find(Place(site.address, "demo", login=login))


def test_a_cached_archive_is_not_given_to_a_profile_without_its_login(
    charts: ChartRepositories, archive: bytes
) -> None:
    """A repository may show its index to everyone, and its archives to those who sign in."""

    def signed_in(request: Request) -> Response:
        return Response(200, archive) if request.headers.get("Authorization") else Response(401)

    with Site({**repository(archive), "/demo.tgz": signed_in}) as site:
        charts.find(Place(site.address, "demo", login=Login(*ADA)))
        with pytest.raises(UnauthorizedError):
            charts.find(Place(site.address, "demo"))


def test_a_failure_is_not_kept(charts: ChartRepositories, archive: bytes) -> None:
    answers = [Response(503)]

    def answer(_: Request) -> Response:
        return answers.pop() if answers else Response(200, archive)

    with Site({**repository(archive), "/demo.tgz": answer}) as site:
        place = Place(site.address, "demo")
        with pytest.raises(UnreachableError):
            charts.find(place)
        assert charts.find(place).chart == "demo"


def test_an_archive_is_checked(charts: ChartRepositories, tmp_path: Path) -> None:
    schema = '{"$ref": "file:///etc/passwd"}'
    hostile = packed(tmp_path, files={"values.schema.json": schema}).read_bytes()
    with Site(repository(hostile)) as site, pytest.raises(InvalidError) as caught:
        charts.find(Place(site.address, "demo"))
    assert str(caught.value) == (
        f"cannot take chart 'demo' 1.0.0 of '{site.address}': its 'values.schema.json' refers by"
        " '$ref' to 'file:///etc/passwd', which Helm would fetch; have the chart's author bundle"
        " the schema, so that it refers only to itself ('#…')"
    )
    assert not list(tmp_path.glob("charts/*"))


@pytest.mark.parametrize(
    "address", ["", "charts.example.com", "ftp://a", "file:///etc", "git+https://a"]
)
def test_what_is_no_repository_is_refused(charts: ChartRepositories, address: str) -> None:
    with pytest.raises(InvalidError) as caught:
        charts.find(Place(address, "demo"))
    assert str(caught.value) == (
        "cannot find chart 'demo': the repository's address begins with none of http://, https://"
        " and oci://"
    )


FOLDER = {
    "charts/web/Chart.yaml": b"apiVersion: v2\nname: web\nversion: 1.2.3\n",
    "charts/web/templates/a.yaml": b"kind: A\n",
    "charts/other/templates/b.yaml": b"kind: B\n",
}


@pytest.mark.parametrize("path", ["charts/web", "/charts/web/", "./charts/web", "charts/./web"])
def test_packs_the_folder_of_a_chart(charts: ChartRepositories, path: str) -> None:
    """What is beside it is not of it, and the same revision is packed once."""
    found = charts.pack(FOLDER, path, "GitRepository a/b sha256:1")
    assert (found.chart, found.version) == ("web", "1.2.3")
    with tarfile.open(found.path) as archive:
        names = {each.name.partition("/")[2] for each in archive}
    assert names == {"Chart.yaml", "templates/a.yaml"}
    assert charts.pack({}, path, "GitRepository a/b sha256:1") == found


def test_packs_a_whole_source_that_is_a_chart(charts: ChartRepositories) -> None:
    files = {"Chart.yaml": FOLDER["charts/web/Chart.yaml"]}
    for number, path in enumerate(("", ".", "./")):
        assert charts.pack(files, path, f"GitRepository a/b sha256:{number}").chart == "web"


@pytest.mark.parametrize(
    ("files", "written"),
    [
        ({}, "cannot take the chart at 'charts/web' of GitRepository a/b sha256:1: there is no"),
        ({"charts/web/Chart.yaml": b"name: web\n"}, "cannot take the chart at 'charts/web'"),
    ],
)
def test_packs_nothing_that_is_no_chart(
    charts: ChartRepositories, files: dict[str, bytes], written: str
) -> None:
    with pytest.raises((MissingError, InvalidError), match=written):
        charts.pack(files, "charts/web", "GitRepository a/b sha256:1")
