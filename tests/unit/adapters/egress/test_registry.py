"""Logins of OCI registries: no server that a registry redirects to receives them."""

from __future__ import annotations

import pytest

from bellhop.adapters.egress.registry import MANIFEST, OciRepository
from bellhop.adapters.egress.source_client import SourceClient
from bellhop.adapters.sources.charts.client import ChartClient
from bellhop.adapters.sources.files.downloads import RemoteClient
from bellhop.core.address_policy import LOCAL
from bellhop.errors import UnauthorizedError
from bellhop.state.chart import Login
from tests.fakes.site import Site
from tests.lab.http_server import Request, Response

LOGIN = Login("ada", "hunter2", plain=True, everywhere=True)
BLOB = "/v2/charts/demo/blobs/a"
CLIENTS = (
    ChartClient("cannot find it", LOGIN, LOCAL),
    RemoteClient("cannot find it", LOGIN, LOCAL),
    RemoteClient("cannot find it", LOGIN, LOCAL, "a-token"),
)


@pytest.mark.parametrize("client", CLIENTS, ids=["chart", "files", "token"])
@pytest.mark.parametrize("scheme", ["Bearer", "Basic"])
def test_a_storage_server_that_asks_gets_no_login(client: SourceClient, scheme: str) -> None:
    """It would name a token server of its own."""
    with Site() as storage, Site() as registry:

        def challenge(_: Request) -> Response:
            asked = f'{scheme} realm="{storage.address}/token",service="a"'
            return Response(401, b"", {"WWW-Authenticate": asked})

        storage.files["/blob"] = challenge
        storage.files["/token"] = Response.of(200, {"token": "t"})
        registry.files[BLOB] = Response(307, b"", {"Location": f"{storage.address}/blob"})
        repository = OciRepository(client, registry.address.partition("//")[2], "charts/demo")
        url = f"{registry.address}{BLOB}"
        answer = repository.get(url, MANIFEST)
        with pytest.raises(UnauthorizedError) as caught:
            repository.success(answer, url)
        assert str(caught.value) == (
            f"cannot find it: '{url}' redirects to '{storage.address}/blob', which asks for"
            " credentials; credentials are not sent to another server"
        )
    assert storage.targets == ["/blob"]
    sent = [each.headers.get("Authorization") for each in (*storage.asked, *registry.asked)]
    assert sent == [None, None]
