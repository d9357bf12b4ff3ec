"""Changes to rendered objects, and differences that are no drift; neither is built yet."""

from typing import Annotated

from pydantic import Field

from bellhop.model.base import Many, Model
from bellhop.model.names import Text


class PatchTarget(Model):
    """Which rendered objects; names and namespaces are regular expressions."""

    group: str = ""
    version: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    label_selector: str = ""
    annotation_selector: str = ""


class Patch(Model):
    """A strategic merge or a JSON patch."""

    patch: Text
    target: PatchTarget | None = None


class DriftExclusion(Model):
    """Paths in which a difference is no drift."""

    paths: Annotated[Many[Text], Field(min_length=1)]
    target: PatchTarget | None = None
