"""From the texts of a profile's patches to its objects for one cluster."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bellhop.errors import InvalidError
from bellhop.rendering.inputs import MissingInputError
from bellhop.rendering.patches.patch import Manifest, Patch, patched, read_patches
from bellhop.rendering.secrecy import LOCALLY
from bellhop.rendering.templates import RenderContext
from bellhop.state.content import PatchText


def with_patches(
    manifests: Sequence[Manifest], texts: Sequence[PatchText], context: RenderContext
) -> tuple[Manifest, ...]:
    """Return objects with the patches that a cluster gets, templates rendered for it.

    Raises:
        MissingInputError: what a patch is to be taken from is not there.
        TemplateError: a template fails.
        InvalidError: a text is no patch, or does not fit an object.
    """
    rendered = rendered_for(texts, context)
    return patched(manifests, [patch for each in rendered for patch in patches_of(each)])


def rendered_for(texts: Sequence[PatchText], context: RenderContext) -> tuple[PatchText, ...]:
    """Return the texts that a cluster gets, rendered for it: they are no templates any more.

    Raises:
        MissingInputError: what a patch is to be taken from is not there.
        TemplateError: a template fails.
    """
    made = (_rendered(each, context) for each in texts if each.is_for(context.key))
    # A template may write no patch for some clusters.
    return tuple(each for each in made if each.text.strip())


def _rendered(text: PatchText, context: RenderContext) -> PatchText:
    if text.missing:
        raise MissingInputError(text.missing)
    secret = context.secret or text.secret
    made = context.render(text)
    return PatchText(made, text.source, plain=True, secret=secret, target=text.target)


def patches_of(text: PatchText) -> tuple[Patch, ...]:
    """Read the patches of a text that is rendered.

    Raises:
        InvalidError: it is no patch; of a secret one nothing is quoted.
    """
    try:
        found = read_patches(text.text, text.target, source=text.source)
    except InvalidError:
        if not text.secret:
            raise
        raise InvalidError(f"the patch cannot be read; {LOCALLY}", where=text.source) from None
    return tuple(each._replace(secret=text.secret) for each in found)


def objections(texts: Sequence[PatchText]) -> Iterator[tuple[int, str]]:
    """Yield the numbers of texts that are no patch, and why; templates are not checked yet."""
    for number, each in enumerate(texts):
        try:
            if "{{" not in each.text:
                read_patches(each.text, each.target, source="")
        except InvalidError as error:
            yield number, str(error)
