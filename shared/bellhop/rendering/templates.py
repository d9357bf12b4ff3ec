"""Rendering one text with one set of variables, in either dialect, with errors that point."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Literal

from msgspec import Struct

from bellhop import gotemplate
from bellhop.errors import InvalidError, TemplateError
from bellhop.gotemplate import Limits
from bellhop.rendering.secrecy import KIND, LOCALLY, Withheld, is_withheld
from bellhop.state.cluster_text import HeldText

Dialect = Literal["go", "jinja2"]
MissingKey = Literal["error", "default", "zero"]

ANNOTATION = "bellhop.dev/template"
"""Chooses the dialect of what a ConfigMap, a Secret or an EventTrigger holds."""

_DIALECTS: dict[str, Dialect] = {"go": "go", "jinja2": "jinja2"}
# A step of Jinja2 does more than one of ours, and takes longer.
_JINJA_STEPS = 250_000


class TemplateText(Struct, frozen=True):
    """A text to render: what errors call it, its dialect, and whether it may be quoted.

    At deploy time Go's templates name by identifier what they are given as objects at event time:
    `resources` are those, and None at event time.
    A `secret` text is never quoted in an error, neither as written nor as rendered.
    """

    text: str
    name: str
    dialect: Dialect = "go"
    secret: bool = False
    missing: MissingKey = "error"
    resources: Mapping[str, dict[str, Any]] | None = None

    def render(self, variables: Mapping[str, Any], limits: Limits) -> str:
        """Render with the functions of event time, or of deploy time.

        Raises:
            TemplateError: in the dialect's own wording, with the template's name and line.
        """
        if self.dialect == "jinja2":
            return self._jinja(variables, limits)
        if "{{" not in self.text:
            return self.text
        try:
            return self._compiled().render(variables, limits=limits)
        except gotemplate.GoTemplateError as error:
            # What a limit says is ours; all else may quote the text, or what a function was given.
            if self.secret and not isinstance(error, gotemplate.LimitError):
                raise self._withheld(error.line, f":{error.column}") from None
            raise TemplateError(
                str(error), name=error.name, line=error.line, column=error.column
            ) from error

    def objection(self) -> str:
        """Return why it is no template of Go, without rendering it; empty if it is one."""
        try:
            self._compiled()
        except gotemplate.GoTemplateError as error:
            return str(self._withheld(error.line) if self.secret else error)
        return ""

    def _withheld(self, line: int, column: str = "") -> TemplateError:
        place = f"{self.name}:{line}{column}" if line else self.name
        words = f"template: {place}: the template fails here; {LOCALLY}"
        return TemplateError(words, name=self.name, line=line)

    def origins(self, variables: Mapping[str, Any], limits: Limits) -> list[int]:
        """Return the template's line for each rendered line; nothing where it fails to render."""
        if self.dialect == "jinja2":
            from bellhop import jinjabox as jinja  # noqa: PLC0415 - see _jinja

            try:
                return jinja.origins(self.text, variables, name=self.name, limits=_jinja(limits))
            except jinja.JinjaError:
                return []
        try:
            return self._compiled().origins(variables, limits=limits)
        except gotemplate.GoTemplateError:
            return []

    def _compiled(self) -> gotemplate.Template:
        return gotemplate.compile_template(
            self.text,
            name=self.name,
            funcs=gotemplate.event_functions()
            if self.resources is None
            else gotemplate.deploy_functions(self.resources),
            missingkey=self.missing,
        )

    def _jinja(self, variables: Mapping[str, Any], limits: Limits) -> str:
        # Jinja2 costs a cold function 30 ms, and most users have no template in it.
        from bellhop import jinjabox as jinja  # noqa: PLC0415

        try:
            return jinja.render(self.text, variables, name=self.name, limits=_jinja(limits))
        except jinja.JinjaError as error:
            if self.secret:
                raise self._withheld(error.line) from None
            shown = f", in '{error.excerpt[:120]}'" if error.excerpt else ""
            raise TemplateError(f"{error}{shown}", name=error.name, line=error.line) from error


def render(
    text: str,
    variables: Mapping[str, Any],
    *,
    name: str,
    limits: Limits,
    dialect: Dialect = "go",
) -> str:
    """Render a text; see `TemplateText.render`."""
    return TemplateText(text, name, dialect).render(variables, limits)


class RenderContext(Struct, frozen=True, dict=True):
    """The variables that templates of deploy time have for one cluster, and their limits.

    `resources` are the objects that they may read, by identifier.
    """

    cluster: Mapping[str, Any]
    limits: Limits
    resources: Mapping[str, dict[str, Any]] = {}

    @cached_property
    def secret(self) -> bool:
        """Say whether nobody may quote an object that templates read."""
        return any(map(is_withheld, self.resources.values()))

    @property
    def key(self) -> str:
        """Return the key of the cluster."""
        metadata = self.cluster["metadata"]
        return f"{metadata['namespace']}/{metadata['name']}"

    @property
    def root(self) -> dict[str, Any]:
        """Return the root variables of templates."""
        return {"Cluster": self.cluster, "MgmtResources": self.resources}

    def render(self, text: HeldText) -> str:
        """Return a text that a profile holds as the cluster gets it.

        Raises:
            TemplateError: it is a template that fails.
        """
        if text.plain or "{{" not in text.text:
            return text.text
        secret = self.secret or text.secret
        template = TemplateText(text.text, text.source, secret=secret, resources=self.resources)
        return template.render(self.root, self.limits)

    def withheld(self, values: Sequence[str] = ()) -> Withheld:
        """Return what no name may be made of: Secrets that templates read, and `values` of some."""
        objects = [
            {**each, "kind": KIND} if is_withheld(each) else each
            for each in self.resources.values()
        ]
        held = {"kind": KIND, "stringData": dict(enumerate(values))}
        return Withheld.of({"Resources": [*objects, held], "Cluster": self.cluster})


def dialect_of(*annotations: Mapping[str, str]) -> Dialect:
    """Return the dialect that the first of several annotations chooses; Go's where none does.

    Raises:
        InvalidError: there is no such dialect.
    """
    chosen = next((each[ANNOTATION] for each in annotations if ANNOTATION in each), "go")
    if chosen not in _DIALECTS:
        raise InvalidError(
            f"the annotation {ANNOTATION} is '{chosen[:40]}'; it takes {' or '.join(_DIALECTS)}"
        )
    return _DIALECTS[chosen]


def _jinja(limits: Limits) -> Limits:
    return limits._replace(steps=_JINJA_STEPS)
