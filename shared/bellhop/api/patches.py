"""Changes to rendered objects, and differences that are no drift."""

from typing import Annotated, Self

from pydantic import AfterValidator, Field, model_validator

from bellhop.core.base import Many, Model, mistake
from bellhop.core.names import Text
from bellhop.core.selector import Selector
from bellhop.state.content import ALL, Exclusion, PatchText, Target

_NAMING = frozenset({"/apiVersion", "/kind", "/metadata", "/metadata/name", "/metadata/namespace"})


def _pointer(path: str) -> str:
    """Check that a path leads to a field that others may own: no field of a name may be theirs."""
    if not path.startswith("/") or path == "/" or path in _NAMING:
        raise mistake(f"{path!r} is not a path that can be left to others; write /spec/replicas")
    return path


class PatchTarget(Model):
    """Conditions on rendered objects: regular expressions, and two selectors."""

    group: str = ""
    version: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    label_selector: str = ""
    annotation_selector: str = ""

    @model_validator(mode="after")
    def _is_read(self) -> Self:
        for text in (self.label_selector, self.annotation_selector):
            Selector.parse(text)
        for field in ("group", "version", "kind", "namespace", "name"):
            if problem := _pattern_problem(getattr(self, field)):
                raise mistake(f"{field}: {problem}")
        return self

    def record(self) -> Target:
        """Return it as it is stored."""
        return Target(
            group=self.group,
            version=self.version,
            kind=self.kind,
            namespace=self.namespace,
            name=self.name,
            labels=self.label_selector,
            annotations=self.annotation_selector,
        )


class Patch(Model):
    """A strategic merge or a JSON patch."""

    patch: Text
    target: PatchTarget | None = None

    def record(self, source: str) -> PatchText:
        """Return it as it is stored; errors call it `source`."""
        target = self.target.record() if self.target else None
        return PatchText(self.patch, source, target=target)


class DriftExclusion(Model):
    """Paths in which a difference is no drift, as written."""

    paths: Annotated[Many[Annotated[Text, AfterValidator(_pointer)]], Field(min_length=1)]
    target: PatchTarget | None = None

    def exclusion(self) -> Exclusion:
        """Return it as it is stored."""
        return Exclusion(tuple(self.paths), self.target.record() if self.target else ALL)


def _pattern_problem(pattern: str) -> str:
    """Return the error in a regular expression; empty if it has none."""
    if not pattern:
        return ""
    import re2  # noqa: PLC0415 - 4 ms, of use only to targets by name

    options = re2.Options()
    options.log_errors = False
    try:
        re2.compile(pattern, options)
    except re2.error as error:
        said = error.args[0] if error.args else ""
        text = said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)
        return f"{text} in {pattern!r}"
    return ""
