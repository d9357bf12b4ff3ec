"""An EventReport has the shape users know, whatever wrote it."""

import base64
from typing import Any

from bellhop.api.report import event_report

SERVICE: dict[str, Any] = {
    "kind": "Service",
    "apiVersion": "v1",
    "metadata": {"namespace": "default", "name": "my-service", "uid": "1"},
    "spec": {"ports": [{"port": 80}]},
}
NODE: dict[str, Any] = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "é"}}


def test_reports_whole_objects() -> None:
    """A collecting source's report holds each object's JSON, closed by three dashes."""
    report = event_report("default", "workload", "services", [SERVICE, NODE], collect=True)

    resources = base64.b64decode(report["spec"].pop("resources")).decode()
    assert resources == (
        '{"apiVersion":"v1","kind":"Service","metadata":{"name":"my-service",'
        '"namespace":"default","uid":"1"},"spec":{"ports":[{"port":80}]}}\n---'
        '{"apiVersion":"v1","kind":"Node","metadata":{"name":"é"}}\n---'
    )
    assert report == {
        "apiVersion": "lib.projectsveltos.io/v1beta1",
        "kind": "EventReport",
        "metadata": {
            "name": "sveltos--services--workload",
            "namespace": "default",
            "labels": {
                "eventreport.projectsveltos.io/cluster-name": "workload",
                "eventreport.projectsveltos.io/cluster-type": "sveltos",
                "projectsveltos.io/eventsource-name": "services",
            },
        },
        "spec": {
            "clusterNamespace": "default",
            "clusterName": "workload",
            "clusterType": "Sveltos",
            "eventSourceName": "services",
            "matchingResources": [
                {
                    "apiVersion": "v1",
                    "kind": "Service",
                    "namespace": "default",
                    "name": "my-service",
                },
                {"apiVersion": "v1", "kind": "Node", "name": "é"},
            ],
        },
    }


def test_reports_only_references() -> None:
    """Without collecting, and without a match, there are no resources."""
    assert "resources" not in event_report("n", "c", "s", [SERVICE], collect=False)["spec"]
    assert "resources" not in event_report("n", "c", "s", [], collect=True)["spec"]
