"""The official client comes in its smallest part, and leaves the whole of it usable."""

from __future__ import annotations

import subprocess
import sys

import pytest


def _run(program: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    )
    return done.stdout.split()


def test_loads_no_model() -> None:
    """Importing the client and making a session stays far from the thousand modules of models."""
    loaded = _run(
        "import sys; from bellhop.adapters.kube.client import KubeClient\n"
        "from bellhop.model.kubeconfig import Kubeconfig\n"
        "KubeClient('a/b', Kubeconfig('http://127.0.0.1:1', token='t'))\n"
        "print(*sys.modules)"
    )

    assert "urllib3" in loaded
    assert [name for name in loaded if name.startswith("kubernetes")] == []
    assert len(loaded) < 500


def test_importing_the_client_loads_nothing_of_kubernetes() -> None:
    """Importing has no effect: the REST client comes with the first session."""
    loaded = _run("import sys, bellhop.adapters.kube.access\nprint('requests' in sys.modules)")

    assert loaded == ["False"]


@pytest.mark.parametrize(
    "first",
    [
        pytest.param("ours = official.rest(); import kubernetes.client", id="ours first"),
        pytest.param("import kubernetes.client; ours = official.rest()", id="the whole first"),
    ],
)
def test_the_whole_package_works_beside_it(first: str) -> None:
    """Whoever wants the models gets them, before and after, without a warning."""
    said = _run(
        f"from bellhop.adapters.kube import official\n{first}\n"
        "print(kubernetes.client.V1Pod().kind, ours.RESTClientObject.__name__)\n"
        "print(official.rest() is ours)"
    )

    assert said == ["None", "RESTClientObject", "True"]


def test_says_that_the_package_is_missing() -> None:
    """Without the package the error names it, as an import would."""
    said = _run(
        "import sys\n"
        "class Nothing:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'kubernetes': raise ModuleNotFoundError(name)\n"
        "sys.meta_path.insert(0, Nothing())\n"
        "from bellhop.adapters.kube import official\n"
        "try: official.rest()\n"
        "except ModuleNotFoundError as exc: print('missing', 'kubernetes' in str(exc))"
    )

    assert said == ["missing", "True"]
