"""The example of a promotion: staging has a release at once, and production when it is forced."""

from __future__ import annotations

from pathlib import Path

from bellhop.core.gvk import GVK, ObjectKey
from infra.demo.user import User
from infra.lab.cluster import Cluster
from infra.lab.processes import Nursery
from tests.flow.conftest import EXAMPLES, SETTINGS, InProcessStand
from tests.waiting import eventually

AGENT = ObjectKey(GVK("", "v1", "ConfigMap"), "default", "agent")


def test_a_release_stays_in_staging_until_it_is_forced(
    tmp_path: Path, source_cluster: Cluster, destination_cluster: Cluster
) -> None:
    """The stage between has no clusters, and is passed by nobody but a user."""
    with Nursery() as nursery:
        stand = InProcessStand(tmp_path / "stand", nursery, settings=SETTINGS)
        stand.serve()
        staging, production = (
            User(each.kubeconfig()) for each in (source_cluster, destination_cluster)
        )
        stand.register(source_cluster, namespace="fleet", labels="env=staging", forward=False)
        stand.register(
            destination_cluster, namespace="fleet", labels="env=production", forward=False
        )

        stand.do("apply", "-f", str(EXAMPLES / "promotion"))
        eventually("it soaks", lambda: "Soaking" in stand.do("get", "promotions"))
        assert staging.get(AGENT)
        assert production.get(AGENT) is None
        compared = stand.bellhop("diff", "promotion", "agent", "--stage", "production")
        assert compared.returncode == 1, compared.stderr
        first, second = compared.stdout.splitlines()
        assert first.startswith("Release 1, which is Soaking at stage 'staging', comes next to")
        assert "Create ConfigMap 'default/agent' of 'agent-production'" in second
        assert production.get(AGENT) is None

        stand.do("promote", "promotion", "agent", "--stage", "production", "--force")
        eventually("production has it", lambda: production.get(AGENT))
        stand.do("delete", "clusterpromotion", "agent")
        eventually("both are withdrawn", lambda: not (staging.get(AGENT) or production.get(AGENT)))
        staging.close()
        production.close()
        stand.close()
