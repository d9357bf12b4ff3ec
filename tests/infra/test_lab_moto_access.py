"""The lab's AWS lets a role do what its policies allow, and nothing else."""

from __future__ import annotations

import json
from typing import Any
from uuid import uuid4

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from tests.lab.moto import ACCESS_KEY, REGION, SECRET_KEY, Moto

ONCE = Config(retries={"total_max_attempts": 1})


def client(moto: Moto, service: str, keys: dict[str, str] | None = None) -> Any:
    given = keys or {"AccessKeyId": ACCESS_KEY, "SecretAccessKey": SECRET_KEY}
    return boto3.client(
        service,
        endpoint_url=moto.url,
        region_name=REGION,
        config=ONCE,
        aws_access_key_id=given["AccessKeyId"],
        aws_secret_access_key=given["SecretAccessKey"],
        aws_session_token=given.get("SessionToken"),
    )


def role(moto: Moto, *statements: dict[str, Any]) -> dict[str, str]:
    """Make a role with a policy; return its credentials."""
    iam, name = client(moto, "iam"), f"role-{uuid4().hex[:8]}"
    made = iam.create_role(RoleName=name, AssumeRolePolicyDocument="{}")
    document = json.dumps({"Version": "2012-10-17", "Statement": list(statements)})
    iam.put_role_policy(RoleName=name, PolicyName="one", PolicyDocument=document)
    given: dict[str, str] = client(moto, "sts").assume_role(
        RoleArn=made["Role"]["Arn"], RoleSessionName="test"
    )["Credentials"]
    return given


def allow(action: str, resource: str, **more: Any) -> dict[str, Any]:
    return {"Effect": "Allow", "Action": action, "Resource": resource, **more}


@pytest.fixture
def secret(moto: Moto) -> str:
    name = f"lab-{uuid4().hex[:8]}/one"
    client(moto, "secretsmanager").create_secret(Name=name, SecretString="value")
    return name


def read(moto: Moto, keys: dict[str, str], secret: str) -> str:
    """Return what is read, or the code of the refusal."""
    try:
        answer = client(moto, "secretsmanager", keys).get_secret_value(SecretId=secret)
    except ClientError as error:
        return str(error.response["Error"]["Code"])
    return str(answer["SecretString"])


def test_lets_a_role_do_what_its_policy_names(moto: Moto, secret: str) -> None:
    """Action and resource have to be those of the request."""
    place = "arn:aws:secretsmanager:*:*:secret:"
    good = role(moto, allow("secretsmanager:GetSecretValue", f"{place}{secret}-??????"))
    other = role(moto, allow("secretsmanager:GetSecretValue", f"{place}other-??????"))
    writes = role(moto, allow("secretsmanager:PutSecretValue", f"{place}*"))

    recorded = [read(moto, keys, secret) for keys in (good, other, writes)]
    assert recorded == ["value", "AccessDeniedException", "AccessDeniedException"]


def test_denies_what_it_does_not_understand(moto: Moto, secret: str) -> None:
    """A statement with a condition allows nothing, as nobody evaluates the condition here."""
    condition = {"Bool": {"aws:SecureTransport": "true"}}
    keys = role(moto, allow("secretsmanager:*", "*", Condition=condition))

    assert read(moto, keys, secret) == "AccessDeniedException"


def test_denies_in_the_words_of_s3(moto: Moto) -> None:
    """S3 answers in XML, with a status of its own."""
    keys = role(moto, allow("s3:GetObject", "arn:aws:s3:::mine/*"))

    with pytest.raises(ClientError) as refused:
        client(moto, "s3", keys).put_object(Bucket="mine", Key="a", Body=b"")
    assert refused.value.response["Error"]["Code"] == "AccessDenied"


def test_records_the_requests(moto: Moto, secret: str) -> None:
    """Denied actions are listed beside allowed ones; they can be forgotten."""
    keys = role(moto, allow("secretsmanager:GetSecretValue", "*"))
    moto.forget_access()
    read(moto, keys, secret)

    (recorded,) = moto.access()
    assert (recorded["action"], recorded["allowed"], recorded["times"]) == (
        "secretsmanager:GetSecretValue",
        True,
        1,
    )


def test_lets_the_account_do_anything(moto: Moto, secret: str) -> None:
    """Keys that are no role's are the account's."""
    root = {"AccessKeyId": ACCESS_KEY, "SecretAccessKey": SECRET_KEY}

    assert read(moto, root, secret) == "value"
