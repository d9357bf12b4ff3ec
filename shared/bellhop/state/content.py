"""The contents of a profile: manifests, templates, charts, kustomizations, and their handling.

Files of an add-on may be in a Flux source or at a URL. A profile reads a Flux source as any object
of the cluster `mgmt/mgmt`, whose forwarder reports a new revision; of a URL it reads a digest.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, ClassVar, Literal, NamedTuple
from urllib.parse import urlsplit

from msgspec import Struct
from msgspec.structs import replace

from bellhop.core.structs import Redacted
from bellhop.state.chart import Chart
from bellhop.state.cluster import Cluster
from bellhop.state.cluster_text import HeldText

FLUX = "source.toolkit.fluxcd.io/v1"
FLUX_KINDS = frozenset({"GitRepository", "OCIRepository", "Bucket"})
FLUX_SCHEMES = tuple(f"{each.lower()}://" for each in sorted(FLUX_KINDS))
REMOTE = "RemoteURL"
"""The kind by which the files of a URL are called."""


class FileRef(Struct, frozen=True):
    """The files of an add-on."""

    field: str
    """The identifier under which the profile reads their source."""
    path: str = ""
    """A template of deploy time unless it is plain."""
    plain: bool = False
    template: bool = False
    """The files are templates, too."""


class Address(Struct, frozen=True):
    """A URL, which may be a template, and the options of its download."""

    url: str
    seconds: float
    secret: str = ""
    """The Secret of its credentials, if it needs some."""
    namespace: str = ""
    """Of the Secret; empty for the cluster's."""
    insecure: bool = False
    plain: bool = False


class Remote(Redacted, frozen=True):
    """A URL (`http://`, `https://` or `oci://`), and how it is downloaded.

    A download is valid for so many `seconds`. `authority` is PEM, or empty for the system's;
    by `plain` an OCI registry is called without TLS.
    """

    secret_fields: ClassVar[Collection[str]] = ("token", "password")
    url: str
    seconds: float = 300.0
    token: str = ""
    username: str = ""
    password: str = ""
    authority: str = ""
    insecure: bool = False
    plain: bool = False


class FluxPath(NamedTuple):
    """A path in a Flux source."""

    kind: str
    namespace: str
    name: str
    path: str

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


def flux_path(url: str) -> FluxPath | None:
    """Read `gitrepository://NAMESPACE/NAME/PATH` or the like; None for any other URL."""
    scheme, _, place = url.partition("://")
    for kind in FLUX_KINDS:
        if scheme.lower() == kind.lower():
            namespace, _, rest = place.partition("/")
            name, _, path = rest.partition("/")
            return FluxPath(kind, namespace, name, path)
    return None


def artifact_of(source: Mapping[str, Any]) -> tuple[str, str]:
    """Return the URL and the digest of what a Flux source has fetched; empty before it has."""
    artifact = (source.get("status") or {}).get("artifact") or {}
    digest = artifact.get("digest") or artifact.get("checksum")
    return str(artifact.get("url") or ""), str(digest or "")


def ref_name(kind: str, namespace: str, name: str) -> str:
    """Return what a ref is called in text and records; a URL by itself."""
    return name if kind == REMOTE else f"{kind} {namespace}/{name}"


def ref_parts(ref: str) -> tuple[str, str, str]:
    """Return kind, namespace and name of a ref by what it is called."""
    kind, _, place = ref.partition(" ")
    if "://" in kind:
        return REMOTE, "", ref
    namespace, _, name = place.partition("/")
    return kind, namespace, name


def shown_url(url: str) -> str:
    """Return a URL as everybody may see it: without what may be secret."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return "an invalid address"
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


ENTRY = "kustomize.tar.gz"
"""The entry of a ConfigMap or Secret that has the tarball, as in Sveltos."""


class Substitute(HeldText, frozen=True):
    """A value that replaces its key in the result of a kustomization."""

    key: str = ""


class Kustomization(Redacted, frozen=True):
    """One kustomization; path, components and namespace are templates of deploy time."""

    secret_fields: ClassVar[Collection[str]] = ("tarball", "values")
    field: str
    path: str = ""
    components: tuple[str, ...] = ()
    namespace: str = ""
    values: tuple[Substitute, ...] = ()
    """Of several with one key the last one counts."""
    plain: bool = False
    """Events have rendered it: nothing in it is a template."""
    tarball: str = ""
    """In base64."""

    @property
    def alike(self) -> bool:
        """Return whether all clusters get the same of it."""
        texts = (self.path, *self.components, self.namespace)
        return not self.values and (self.plain or not any("{{" in each for each in texts))


FeatureName = Literal["Resources", "Helm", "Kustomize"]
"""The feature that deploys a part of a profile: `featureID` of Sveltos."""


class Target(Struct, frozen=True):
    """Conditions on an object, all of which must hold; an empty one always holds."""

    group: str = ""
    """This and the next four are regular expressions that match a field as a whole."""
    version: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    labels: str = ""
    """This and the next are selectors."""
    annotations: str = ""


ALL = Target()
"""Every object."""


class Exclusion(Struct, frozen=True):
    """Paths in the targets that others decide once the objects are there."""

    paths: tuple[str, ...]
    target: Target = ALL


class PatchText(HeldText, frozen=True):
    """A patch, and the objects that it is for."""

    target: Target | None = None


class Handling(Struct, frozen=True):
    """The way in which the objects of one ref are deployed."""

    tier: int = 100
    """The ref with the lower one gets an object that two refs of a profile have."""
    force: bool = False
    """Delete and create an object whose change the API server refuses."""
    skip_namespace: bool = False
    """Create no namespace for an object."""
    labels: Mapping[str, str] = {}
    """Added to all objects, after the patches."""
    annotations: Mapping[str, str] = {}
    """Added as the labels are."""
    excluded: tuple[Exclusion, ...] = ()
    """The paths that are written only once."""
    status: bool = False
    """Write the status of objects, too."""
    shared: bool = False
    """Accept an object that another profile has in the same form."""
    local: bool = False
    """Deploy to `mgmt/mgmt`, for each cluster of the profile."""
    patches: tuple[PatchText, ...] = ()
    """Applied to all objects, in their order."""


PLAIN = Handling()
"""The handling where nothing is asked for."""


class Content(Struct, frozen=True):
    """One key of a ConfigMap or Secret, a chart, a kustomization, or files of a source."""

    ref: str
    """The ConfigMap, Secret or source."""
    entry: str
    """The key in it."""
    manifests: tuple[Mapping[str, Any], ...] = ()
    """Objects that need no more rendering."""
    template: str = ""
    """A text to render for each cluster."""
    dialect: Literal["go", "jinja2", "lua"] = "go"
    """Of the template, or `lua` for a script that returns manifests."""
    secret: bool = False
    """Rendered with the values of a Secret: no error quotes it."""
    withheld: tuple[str, ...] = ()
    """These values: at deploy time no name may have one."""
    namespace: str = ""
    """Only the clusters of this namespace get it."""
    missing: str = ""
    """The sentence that says which ref cannot be found."""
    how: Handling = PLAIN
    clusters: tuple[str, ...] = ()
    """Only these clusters get it, by their keys."""
    chart: Chart | None = None
    kustomization: Kustomization | None = None
    files: FileRef | None = None
    """Files that are read when it is deployed."""
    instantiated: bool = False
    """Rendered for an event: Sveltos keeps a ConfigMap or Secret of its own with the result."""

    @property
    def feature(self) -> FeatureName:
        """Return the feature that deploys it."""
        if self.chart:
            return "Helm"
        return "Kustomize" if self.kustomization else "Resources"

    @property
    def comes_later(self) -> bool:
        """Return whether its objects are known only at deploy time."""
        return self.files is not None or self.feature != "Resources"

    @property
    def alike(self) -> bool:
        """Return whether all clusters of a namespace get the same of it."""
        patched = all(each.alike for each in self.how.patches)
        built = self.kustomization is None or self.kustomization.alike
        built = built and self.files is None
        return not self.template and not self.clusters and patched and built

    def with_patches(self, patches: tuple[PatchText, ...]) -> Content:
        """Return it with further patches, after those that it has."""
        if not patches:
            return self
        return replace(self, how=replace(self.how, patches=(*self.how.patches, *patches)))

    def is_for(self, cluster: Cluster) -> bool:
        """Return whether a cluster gets any of it."""
        chosen = not self.clusters or cluster.key in self.clusters
        return chosen and self.namespace in ("", cluster.namespace)


class Reading(Struct, frozen=True):
    """An object that templates of deploy time read by its identifier."""

    identifier: str
    api_version: str
    kind: str
    namespace: str
    """Empty for that of the cluster that is rendered for; this and the name may be templates."""
    name: str
    optional: bool = False
    field: str = ""
    """The field of the add-on whose files it has; empty for `templateResourceRefs`."""
    address: Address | None = None
    """The URL of files that are in no cluster."""
    plain: bool = False
    """The names are no templates any more."""

    def with_namespace(self, namespace: str) -> Reading:
        """Return it with all names in one namespace."""
        address = self.address and replace(self.address, namespace=namespace)
        return replace(self, namespace=namespace, address=address)


SERVICE_ACCOUNT = "ServiceAccount"
"""The kind that begins the `ref` of the first content of a RoleRequest, before its account."""


def get_granted_account(contents: Sequence[Content]) -> str:
    """Return the account that a RoleRequest gives rights to; empty if it deploys nothing."""
    kind, _, account = (contents[0].ref if contents else "").partition(" ")
    return account if kind == SERVICE_ACCOUNT else ""


NO_OBJECT = "what it holds writes no object yet"


def empty(contents: Sequence[Content]) -> bool:
    """Return whether there are contents, and none of them deploys anything."""
    return bool(contents) and not any(
        each.manifests or each.template or each.missing or each.comes_later for each in contents
    )
