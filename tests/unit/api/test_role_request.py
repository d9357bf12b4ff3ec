"""RoleRequests as they are written."""

from __future__ import annotations

import pytest

from bellhop.api.kinds import InvalidDocuments, parse_all, read_documents
from bellhop.api.role_request import RoleRequest

TEXT = """\
apiVersion: lib.projectsveltos.io/v1alpha1
kind: RoleRequest
metadata: {name: full-access}
spec:
  clusterSelector: env=production
  expirationSeconds: 600
  serviceAccountName: eng
  serviceAccountNamespace: default
  roleRefs:
  - {kind: ConfigMap, namespace: default, name: full-access}
  - {kind: Secret, name: more}
status: {failureMessage: none}
"""

_NO_ADMIN = (
    "^f, document 1, line 4, spec: admin is no longer a field; write the service account that gets"
    " the rights as serviceAccountName and serviceAccountNamespace$"
)


def test_reads_who_gets_which_rights_where() -> None:
    """As Sveltos has it, in both eras; the token's lifetime is taken."""
    for text in (TEXT, TEXT.replace("v1alpha1", "v1beta1")):
        [found] = parse_all(read_documents(text, source="f"))

        assert isinstance(found, RoleRequest)
        assert found.cluster_selector.matches({"env": "production"})
        assert found.grants == "default/eng"
        assert [each[:3] for each in found.policy_refs] == [
            ("default", "full-access", "ConfigMap"),
            ("", "more", "Secret"),
        ]
        assert (found.key.place, found.rule) == ("full-access", "RoleRequest:full-access")
        assert found.policy.sync == "ContinuousWithDriftDetection"


@pytest.mark.parametrize(
    ("old", "new", "error"),
    [
        ("  serviceAccountName: eng\n", "", "serviceAccountName"),
        ("  serviceAccountNamespace: default\n", "", "serviceAccountNamespace"),
        ("serviceAccountName: eng", "serviceAccountName: Eng", "spec.serviceAccountName"),
        ("kind: Secret", "kind: GitRepository", "spec.roleRefs"),
        ("roleRefs", "policyRefs", "did you mean 'roleRefs'"),
        ("600", "0", "expirationSeconds"),
        ("expirationSeconds: 600", "admin: eng", _NO_ADMIN),
        pytest.param(
            "  serviceAccountName: eng\n  serviceAccountNamespace: default\n",
            "  admin: eng\n",
            _NO_ADMIN,
            id="as the oldest ones are, with nothing else said of what is missing",
        ),
        (
            "{name: full-access}",
            "{name: x, labels: {projectsveltos.io/serviceaccount-name: eng}}",
            "it belongs on what a tenant writes",
        ),
    ],
)
def test_refuses_with_a_sentence(old: str, new: str, error: str) -> None:
    """That says what is wrong, and where."""
    with pytest.raises(InvalidDocuments, match=error):
        parse_all(read_documents(TEXT.replace(old, new), source="f"))
