"""Run Terraform against a moto server: the real program, and the real provider for AWS.

    with Moto(folder) as moto:
        stack = Stack(folder / "stack", "aws-complete", moto.url, {"packages": str(packages)})
        stack.run("apply", "-auto-approve")
        stack.outputs()["bellhop"]

A stack is a copy of one example beside a copy of the modules, and of the sources that these name
packages after: `stack.root` is a checkout. Files beside the example say that AWS is on loopback,
that the module is this copy and no repository, and which settings differ from the example's.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bellhop.errors import MissingError, PermanentError
from tests.lab.moto import ACCESS_KEY, REGION, SECRET_KEY

ROOT = Path(__file__).parents[2] / "terraform"

_PROVIDER = "registry.terraform.io/hashicorp/aws"
_SERVICES = (
    *("apigateway", "apigatewayv2", "cloudwatch", "dynamodb", "ec2", "eventbridge", "iam"),
    *("kms", "lambda", "logs"),
    *("s3", "s3control", "scheduler", "secretsmanager", "sns", "sqs", "sts"),
)
_AT_ONCE = "-parallelism=40"
"""Most of the time is the provider's own waiting, which costs nothing to do side by side."""

_GARBAGE = "400"
"""Each command reads the schemas of all that the provider knows: memory is cheaper than tidying."""


@dataclass(frozen=True)
class Terraform:
    """The program, and the folder that has its providers in the layout of a mirror."""

    program: Path
    mirror: Path


def find_terraform(environ: Mapping[str, str] = os.environ) -> Terraform:
    """Find Terraform on PATH, and a mirror that has the provider for AWS.

    Raises:
        MissingError: one of them is not there; the message says how to have it.
    """
    program = shutil.which("terraform", path=environ.get("PATH"))
    if program is None:
        raise MissingError("cannot run Terraform: it is not on PATH; install version 1.11 or newer")
    for mirror in _mirrors(environ):
        if (mirror / _PROVIDER).is_dir():
            return Terraform(Path(program), mirror)
    raise MissingError(
        f"cannot run Terraform: no mirror of providers has {_PROVIDER}; set BELLHOP_TF_MIRROR to"
        " one, as `terraform providers mirror FOLDER` makes it"
    )


def _mirrors(environ: Mapping[str, str]) -> Iterator[Path]:
    if given := environ.get("BELLHOP_TF_MIRROR"):
        yield Path(given)
    home = Path(environ.get("HOME") or "/")
    yield home / ".terraform.d" / "plugins"
    yield Path("/usr/local/share/terraform/plugins")
    yield from sorted(Path("/opt").glob("*plugins*"))


class Stack:
    """A copy of an example in a folder of its own, with its state."""

    def __init__(
        self,
        folder: Path,
        example: str,
        endpoint: str,
        variables: Mapping[str, object],
        settings: Mapping[str, float] | None = None,
        region: str = REGION,
    ) -> None:
        self._terraform = find_terraform()
        self.root = folder
        _check_out(folder)
        self.place = folder / "terraform" / "examples" / example
        module: dict[str, object] = {"source": "../../modules/aws"}
        if settings:
            module["settings"] = dict(settings)
        redirect(self.place, endpoint, region=region, module=module)
        values = self.place / "stack.auto.tfvars.json"
        values.write_text(json.dumps(dict(variables)))
        self._environment = _environment(folder, self._terraform)
        self.run("init")

    def test(self, module: str, endpoint: str) -> str:
        """Run a module's own tests against the AWS of an endpoint; return what they said."""
        place = self.root / "terraform" / "modules" / module
        self.run("init", place=place)
        return self.run("test", place=place, more={"AWS_ENDPOINT_URL": endpoint})

    def run(
        self,
        *arguments: str,
        expect: tuple[int, ...] = (0,),
        place: Path | None = None,
        more: Mapping[str, str] | None = None,
    ) -> str:
        """Run a command of Terraform, of one word or two; return what it said and complained of.

        It runs beside the example, or in another `place`, with `more` in its environment.

        Raises:
            PermanentError: its code is none of those expected; the message ends with its words.
        """
        command, *rest = arguments
        at_once = [_AT_ONCE] if command in {"apply", "destroy", "plan"} else []
        done = subprocess.run(
            [self._terraform.program, *command.split(), "-no-color", *at_once, *rest],
            cwd=place or self.place,
            env={**self._environment, **(more or {})},
            check=False,
            capture_output=True,
            text=True,
        )
        output = done.stdout + done.stderr
        if done.returncode not in expect:
            raise PermanentError(
                f"terraform {command} ended with {done.returncode}: {output[-900:]}"
            )
        return output

    def outputs(self) -> dict[str, Any]:
        """Return the values of the outputs."""
        outputs: dict[str, Any] = json.loads(self.run("output", "-json"))
        return {name: each["value"] for name, each in outputs.items()}


def redirect(
    place: Path,
    endpoint: str,
    *,
    region: str = REGION,
    module: Mapping[str, object] | None = None,
) -> None:
    """Lay files beside an example: AWS is at an endpoint, and the module has other arguments."""
    (place / "provider_override.tf").write_text(_provider(endpoint, region))
    if module:
        content = {"module": {"bellhop": dict(module)}}
        (place / "arguments_override.tf.json").write_text(json.dumps(content))


def shell_environment(folder: Path) -> dict[str, str]:
    """Return the environment of a person who types, and says yes whenever Terraform asks.

    Terraform's settings are written into a folder.

    Raises:
        MissingError: Terraform or its provider is not there; the message says how to have it.
    """
    agreed = f"-auto-approve {_AT_ONCE}"
    environment = _environment(folder, find_terraform())
    return {**environment, "TF_CLI_ARGS_apply": agreed, "TF_CLI_ARGS_destroy": agreed}


def _environment(folder: Path, terraform: Terraform) -> dict[str, str]:
    settings = folder / "terraform.rc"
    settings.write_text(_installation(terraform.mirror))
    kept = {name: os.environ[name] for name in ("HOME", "PATH", "TMPDIR") if name in os.environ}
    return {
        **kept,
        "AWS_EC2_METADATA_DISABLED": "true",
        "CHECKPOINT_DISABLE": "1",
        "GOGC": _GARBAGE,
        "TF_CLI_CONFIG_FILE": str(settings),
        "TF_INPUT": "0",
        "TF_IN_AUTOMATION": "1",
    }


def _check_out(folder: Path) -> None:
    """Copy the modules, the examples and all that is packaged."""
    left_out = shutil.ignore_patterns(".terraform*", "*.tfstate*", "__pycache__")
    for each in ("terraform", "functions", "infra/package", "shared/bellhop"):
        shutil.copytree(ROOT.parent / each, folder / each, ignore=left_out)
    for each in ("pyproject.toml", "requirements.lock"):
        shutil.copy(ROOT.parent / each, folder)


def _installation(mirror: Path) -> str:
    return f"""\
provider_installation {{
  filesystem_mirror {{
    path    = "{mirror}"
    include = ["registry.terraform.io/*/*"]
  }}
}}
"""


def _provider(endpoint: str, region: str) -> str:
    endpoints = "\n".join(f'    {each} = "{endpoint}"' for each in _SERVICES)
    return f"""\
provider "aws" {{
  region                      = "{region}"
  access_key                  = "{ACCESS_KEY}"
  secret_key                  = "{SECRET_KEY}"
  skip_credentials_validation = true
  skip_metadata_api_check     = true
  skip_region_validation      = true
  s3_use_path_style           = true
  max_retries                 = 3
  endpoints {{
{endpoints}
  }}
}}
"""
