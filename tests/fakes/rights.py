"""What service accounts may do in a fake cluster, as its RBAC has it."""

from __future__ import annotations

from collections.abc import Callable

from bellhop.errors import DeniedError

_VERBS = {
    "get": ("get",),
    "list": ("list",),
    "apply": ("create", "patch"),
    "merge": ("patch",),
    "remove": ("delete",),
    "rights": (),
}
ALL = ("get", "list", "create", "patch", "delete")


class Rights:
    """Who may do what to which kinds, and whether Bellhop may act for them."""

    def __init__(self) -> None:
        self.impersonates = True
        self._granted: set[tuple[str, str, str, str]] = set()
        self.bound: Callable[[str, str, str, str], bool] = lambda *_: False

    def grant(self, account: str, kind: str, namespace: str = "", *verbs: str) -> None:
        """Let an account do something to a kind, in a namespace or, by an empty one, in all."""
        self._granted |= {(account, verb, kind, namespace) for verb in verbs or ALL}

    def take(self, account: str, kind: str, namespace: str = "", *verbs: str) -> None:
        """Take away what was granted just so."""
        self._granted -= {(account, verb, kind, namespace) for verb in verbs or ALL}

    def may(self, account: str, verb: str, kind: str, namespace: str) -> bool:
        """Say whether an account may do it; Bellhop's own, which is empty, may do all."""
        places = {(account, verb, kind, place) for place in (namespace, "")}
        granted = bool(places & self._granted)
        return not account or granted or self.bound(account, verb, kind, namespace)

    def refuse(self, account: str, verb: str, kind: str, namespace: str) -> None:
        """Refuse what an account may not do."""
        if account and verb in _VERBS and not self.impersonates:
            raise DeniedError(f"cannot {verb}: Bellhop's credentials may not act for '{account}'")
        for each in _VERBS.get(verb, ()):
            if not self.may(account, each, kind, namespace):
                raise DeniedError(f"'{account}' may not {each} {kind} in namespace '{namespace}'")
