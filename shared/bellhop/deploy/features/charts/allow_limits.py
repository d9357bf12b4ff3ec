"""Holds the objects of a chart to the annotation `bellhop.dev/allow` of its profile.

Helm alone knows what a chart writes, and another call may write something else: random values, or
what `lookup` reads. So each call of Helm checks its own objects, hooks included. It installs the
files of `crds` before it renders anything, and an upgrade may apply them: these are checked here.
"""

from __future__ import annotations

from msgspec.structs import replace

from bellhop.deploy.features.charts.release_objects import documents
from bellhop.ports.charts import Helm, Wanted
from bellhop.ports.kube import Kube
from bellhop.rendering.allow_limits import refuse_charted, release_allow
from bellhop.rendering.manifests import kinds_defined
from bellhop.state.record import Profile


def limited(wanted: Wanted, profile: Profile, kube: Kube, helm: Helm) -> Wanted:
    """Return a release with the objects that it may have, by the scopes of a cluster's kinds.

    Raises:
        NotAllowedError: it may not have a definition that its chart brings by itself.
    """
    options = wanted.options
    brings = not options.skip_crds or (options.upgrade_crds and wanted.there)
    brought = tuple(documents(helm.charts.definitions(wanted))) if brings else ()
    defined = kinds_defined(brought)

    def is_namespaced(group: str, kind: str) -> bool:
        served = kube.served(group, kind)
        return served.namespaced if served else defined.get((group, kind), True)

    allow = release_allow(profile, wanted.namespace, wanted.name, is_namespaced)
    if allow:
        refuse_charted(allow, brought)
    return replace(wanted, allow=allow)
