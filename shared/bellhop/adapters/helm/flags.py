"""Helm's flags for a desired release, and the files that they name."""

from __future__ import annotations

from collections.abc import Iterator

from bellhop.adapters.helm.plugin import CHANGES, NAME, OBJECTION, changes_of
from bellhop.ports.charts import OUR_LABEL, DesiredRelease
from bellhop.state.chart import Options


def files_of(desired: DesiredRelease) -> dict[str, bytes]:
    """Return what Helm and its plugin read: the values, and what is changed of the objects."""
    files = {f"values-{number}": text.encode() for number, text in enumerate(desired.values)}
    if not desired.changes:
        return files
    return {**files, CHANGES: changes_of(desired), OBJECTION: b""}


def value_flags(desired: DesiredRelease) -> Iterator[str]:
    """Yield the flags that name those files."""
    for number, _ in enumerate(desired.values):
        yield from ("--values", f"{{values-{number}}}")
    if desired.changes:
        yield f"--post-renderer={NAME}"


def common_flags(options: Options) -> Iterator[str]:
    """Yield the flags of an installation and of an upgrade."""
    chosen = {
        "--create-namespace": options.create_namespace,
        "--skip-crds": options.skip_crds,
        "--skip-schema-validation": options.skip_schema_validation,
        "--disable-openapi-validation": options.disable_openapi_validation,
        "--no-hooks": options.disable_hooks,
        "--take-ownership": options.take_ownership,
        "--wait=watcher": options.wait,
        "--wait-for-jobs": options.wait_for_jobs,
        "--rollback-on-failure": options.atomic,
        "--force-replace": options.force,
    }
    yield from (flag for flag, is_asked in chosen.items() if is_asked)
    yield f"--timeout={options.timeout_seconds}s"
    labels = {**options.labels, **OUR_LABEL}
    yield "--labels=" + ",".join(f"{key}={value}" for key, value in labels.items())
    if options.description:
        yield f"--description={options.description}"


def upgrade_flags(options: Options) -> Iterator[str]:
    """Yield the flags that only an upgrade has.

    Helm takes an upgrade without values for one that keeps those of the release.
    """
    keeps = options.reuse_values or options.reset_then_reuse_values
    chosen = {
        "--cleanup-on-fail": options.cleanup_on_fail,
        "--reuse-values": options.reuse_values,
        "--reset-values": options.reset_values or not keeps,
        "--reset-then-reuse-values": options.reset_then_reuse_values,
    }
    yield from (flag for flag, is_asked in chosen.items() if is_asked)
    yield f"--history-max={options.max_history}"
