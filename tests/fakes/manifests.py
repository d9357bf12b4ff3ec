"""What users declare in tests: the smallest source, trigger, profile and holder, to be varied.

Each is the text of one document; defaults are those of most tests. `join` makes one file
of several.
"""

from __future__ import annotations

import textwrap
from typing import Any

INSTANTIATE = "projectsveltos.io/instantiate: ok"


def join(*documents: str) -> str:
    """Write several documents as one file."""
    return "---\n".join(documents)


def source(*kinds: str, name: str = "watched", more: str = "", group: str = "") -> str:
    """Return an EventSource for kinds of one group, Services if none is said."""
    selectors = ", ".join(
        f'{{group: "{group}", version: v1, kind: {kind}{more}}}' for kind in kinds or ["Service"]
    )
    return f"""
apiVersion: lib.projectsveltos.io/v1beta1
kind: EventSource
metadata: {{name: {name}}}
spec:
  collectResources: true
  resourceSelectors: [{selectors}]
"""


def trigger(
    name: str = "made",
    *,
    origin: str = "watched",
    one: str = "true",
    more: str = "",
    ref: str = "",
) -> str:
    """Return an EventTrigger of the clusters in production, with the holder `ref` or its name."""
    return f"""
apiVersion: lib.projectsveltos.io/v1beta1
kind: EventTrigger
metadata: {{name: {name}}}
spec:
  sourceClusterSelector: {{matchLabels: {{env: production}}}}
  eventSourceName: '{origin}'
  oneForEvent: {one}
  policyRefs: [{{kind: ConfigMap, name: {ref or name}, namespace: default}}]
  {more}
"""


def profile(
    selected: str = "clusterSelector: {matchLabels: {env: production}}",
    *,
    name: str = "own",
    namespace: str = "",
    more: str = "",
) -> str:
    """Return a user's own profile, for the clusters in production, with its holder.

    With a namespace it is a Profile, and without a ClusterProfile.
    """
    kind, place = ("Profile", f", namespace: {namespace}") if namespace else ("ClusterProfile", "")
    return f"""
apiVersion: config.projectsveltos.io/v1beta1
kind: {kind}
metadata: {{name: {name}{place}}}
spec:
  {selected}
  policyRefs: [{{kind: ConfigMap, name: {name}, namespace: default}}]
  {more}
"""


def cluster_set(
    most: int | None = 1, *, name: str = "active", namespace: str = "", env: str = "production"
) -> str:
    """Return a ClusterSet of the clusters with a label `env`; with a namespace it is a Set."""
    kind, place = ("Set", f", namespace: {namespace}") if namespace else ("ClusterSet", "")
    limit = "" if most is None else f"  maxReplicas: {most}\n"
    return f"""
apiVersion: lib.projectsveltos.io/v1beta1
kind: {kind}
metadata: {{name: {name}{place}}}
spec:
  clusterSelector: {{matchLabels: {{env: {env}}}}}
{limit}"""


def holder(name: str, *objects: str, annotations: str = "", namespace: str = "default") -> str:
    """Return a ConfigMap that holds objects, as they are or, annotated, as templates."""
    body = textwrap.indent(join(*(each.strip() + "\n" for each in objects)), "    ")
    return f"""
apiVersion: v1
kind: ConfigMap
metadata: {{name: {name}, namespace: {namespace}, annotations: {{{annotations}}}}}
data:
  main.yaml: |
{body}"""


def config(name: str, data: str = "", *, namespace: str = "default") -> str:
    """Return a ConfigMap for a holder to deploy; `data` is the text of its data, if it has any."""
    held = f"data: {{{data}}}\n" if data else ""
    return f"""\
apiVersion: v1
kind: ConfigMap
metadata: {{name: '{name}', namespace: {namespace}}}
{held}"""


FOR_EACH = "for-{{ .Resource.metadata.name }}"
"""The name of what a trigger makes of each object that matches."""


GROWS = '{count: "{{ add 1 (int .Resource.data.count) }}"}'
"""Data of what `feeding` makes: each turn is one more."""


def watching(name: str, label: str) -> str:
    """Return a source of the ConfigMaps with a label, in any namespace or one."""
    text = source("ConfigMap", more=f", labelFilters: [{{key: {label}, operation: Has}}]")
    annotations = "annotations: {bellhop.dev/own-writes: ring}"
    return text.replace("{name: watched}", f"{{name: {name}, {annotations}}}")


def feeding(name: str, of: str, makes: str, label: str, data: str = GROWS) -> str:
    """Return a trigger that deploys a ConfigMap with a label, and a number that is one higher."""
    made = f"""apiVersion: v1
kind: ConfigMap
metadata:
  name: "{makes}"
  namespace: default
  labels: {{{label}: "yes"}}
  annotations: {{bellhop.dev/adopt: "true"}}
data: {data}
"""
    return join(trigger(name, origin=of), holder(name, made, annotations=INSTANTIATE))


def seed(label: str, name: str = "one", n: str = "0") -> dict[str, Any]:
    metadata = {"name": name, "namespace": "default", "labels": {label: "yes"}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"count": n}}
