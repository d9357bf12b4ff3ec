"""HealthChecks as tests write them: Services that say themselves how they are."""

from __future__ import annotations

from bellhop.extras.health.notifier import HealthNotifier
from bellhop.logs import Log
from bellhop.state.messages import CheckHealth
from tests.fakes.fleet import Fleet

SAYS = """
function evaluate()
  local found = {}
  for _, each in ipairs(resources) do
    local said = each.metadata.annotations and each.metadata.annotations.state
    if said then
      table.insert(found, {resource = each, healthStatus = said, message = "it says so"})
    end
  end
  return {resources = found}
end
"""


def health_check(script: str = SAYS, *, kind: str = "Service", more: str = "") -> str:
    """Write a HealthCheck of a kind."""
    lines = "\n".join(f"    {line}" for line in script.strip().splitlines())
    return f"""
apiVersion: lib.projectsveltos.io/v1beta1
kind: HealthCheck
metadata: {{name: services}}
spec:
  resourceSelectors: [{{group: '', version: v1, kind: {kind}}}]
  evaluateHealth: |
{lines}
{more}"""


def cluster_check(name: str = "production", *, checks: str = "", notifications: str = "[]") -> str:
    """Write a ClusterHealthCheck that asks the HealthCheck above of clusters in production."""
    asked = checks or "{name: services, type: HealthCheck, livenessSourceRef: {name: services}}"
    return f"""
apiVersion: lib.projectsveltos.io/v1beta1
kind: ClusterHealthCheck
metadata: {{name: {name}}}
spec:
  clusterSelector: {{matchLabels: {{env: production}}}}
  livenessChecks: [{asked}]
  notifications: {notifications}
"""


class Watched(Fleet):
    """A fleet that evaluates its clusters by ClusterHealthChecks, and notifies nobody."""

    def _wire(self) -> None:
        super()._wire()
        log = Log(self.output)
        self.handlers[CheckHealth] = HealthNotifier(self.installation(), log).handle
