"""Wrong ways to wait for charts."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

MUTANTS = [
    Mutant(
        "stages/features/helm/planning.py",
        "    if held.release.ready_by or held.release.kept_until:\n",
        "    if held.release.kept_until:\n",
        "A chart that is not ready counts as deployed at the next try.",
    ),
    Mutant(
        "stages/features/helm/readiness.py",
        "    return options.wait and not (follows or undoes or expire or options.run_tests)\n",
        "    return options.wait\n",
        "Hooks after the wait, and tests, run before a release is ready.",
    ),
    Mutant(
        "stages/features/helm/readiness.py",
        "        if not begun or not release.ready_by or begun <= now:\n",
        "        if begun:\n",
        "A clock that was ahead has a chart waited for a day.",
    ),
    Mutant(
        "stages/features/helm/lane.py",
        "            self._refuse(work)\n",
        "",
        "Charts for which Helm waits hold all workers.",
    ),
    Mutant(
        "stages/features/helm/lane.py",
        "                self._clusters.remove(cluster)\n",
        "                pass\n",
        "A cluster has a turn with Helm once, and never again.",
    ),
]
