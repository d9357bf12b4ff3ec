"""ConfigMaps and Secrets of the configuration: those that manifests name, and no others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from bellhop.api.kinds import CONFIGURED_KINDS, Declaration, DeclarationKey, PolicyRef
from bellhop.catalog.cache import Catalogs
from bellhop.core.gvk import GVK, ObjectKey
from bellhop.core.names import is_template
from bellhop.declarations.diff import HOLDERS
from bellhop.declarations.references import may_mean
from bellhop.ports.kube import Access, Kube
from bellhop.state.messages import ReadBack
from bellhop.state.records import Records

_HOLDERS = {gvk.kind: gvk for gvk in CONFIGURED_KINDS if gvk.kind in HOLDERS}
_PAGE = 500


def list_read_backs(
    records: Records, catalogs: Catalogs, access: Access, new: Declaration
) -> Iterator[ReadBack]:
    """Yield the messages that read what a new manifest names, as far as it is not known yet.

    Raises:
        TemporaryError: the cluster does not answer.
    """
    refs: Iterable[PolicyRef] = getattr(new, "holder_refs", ())
    catalog = catalogs.current()
    cluster = catalog.clusters.get(catalog.configuration)
    if cluster is None or not any(refs):
        return
    kube = access.open(cluster.key, version=cluster.credentials)
    for key in find_holders(kube, refs):
        if records.configured.get(*key) is None:
            yield make_read_back(cluster.key, _HOLDERS[key.kind], key)


def find_holders(kube: Kube, refs: Iterable[PolicyRef]) -> Iterator[DeclarationKey]:
    """Yield the ConfigMaps and Secrets that refs name, each once.

    Those of refs with templates are listed: the objects that such a name fits.

    Raises:
        BellhopError: the cluster does not answer, or refuses the list.
    """
    found: set[DeclarationKey] = set()
    for ref in refs:
        given = (
            _list_fitting(kube, ref)
            if ref.templated or not ref.namespace
            else [DeclarationKey(ref.kind, ref.namespace, ref.name)]
        )
        for key in given:
            if key.kind in _HOLDERS and key not in found:
                found.add(key)
                yield key


def make_read_back(cluster: str, gvk: GVK, key: DeclarationKey) -> ReadBack:
    """Return the message that reads an object of the configuration as it is."""
    return ReadBack(cluster, str(ObjectKey(gvk, key.namespace, key.name)), "", 0)


def _list_fitting(kube: Kube, ref: PolicyRef) -> Iterator[DeclarationKey]:
    gvk = _HOLDERS.get(ref.kind)
    if gvk is None:
        return
    namespace = "" if is_template(ref.namespace) else ref.namespace
    after = ""
    while True:
        page = kube.page(gvk, limit=_PAGE, after=after, namespace=namespace)
        for item in page.items:
            metadata = item["metadata"]
            key = DeclarationKey(ref.kind, metadata["namespace"], metadata["name"])
            if may_mean(ref, key):
                yield key
        if not page.after:
            return
        after = page.after
