"""Tokens of service accounts, made by another library than the one that checks them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from joserfc import jwt
from joserfc.jwk import ECKey, RSAKey

from bellhop.ingest.account_tokens import FORWARDER

ISSUER = "https://kubernetes.default.svc"
AUDIENCE = "https://ingest.example"


class Signer:
    """One key of an API server, by its name."""

    def __init__(self, kid: str, curve: str = "") -> None:
        self.kid = kid
        self.key = ECKey.generate_key(curve) if curve else RSAKey.generate_key(2048)
        algorithms = {"": "RS256", "P-256": "ES256", "P-384": "ES384", "P-521": "ES512"}
        self.algorithm = algorithms[curve]

    def published(self, **more: Any) -> dict[str, Any]:
        """Return it as API servers publish it."""
        public = self.key.as_dict(private=False)
        return {**public, "kid": self.kid, "alg": self.algorithm, "use": "sig", **more}

    def token(self, now: datetime, head: dict[str, Any] | None = None, **claims: Any) -> str:
        """Make a token that is good for an hour, but for what is said; None leaves a claim out."""
        at = int(now.timestamp())
        said = {"iss": ISSUER, "aud": [AUDIENCE], "sub": FORWARDER, "nbf": at, "exp": at + 3600}
        kept = {name: each for name, each in {**said, **claims}.items() if each is not None}
        header = {"alg": self.algorithm, "kid": self.kid, **(head or {})}
        return jwt.encode(header, kept, self.key, algorithms=[self.algorithm])
