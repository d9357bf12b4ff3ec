"""Errors of AWS and its SDK as Bellhop's: one table by code, one by class.

Permanent is only what the request itself is refused for, and what is not there though it was
named. Everything else is the installation's: a right that a role lacks, a table that is not there
yet, a key that is switched off. A message that meets such a thing must not be taken for finished,
so all of it may pass: it passes once somebody has put it right.

No word of AWS' is repeated, as it may quote what was sent; the code and the request's id are.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from http import HTTPStatus
from typing import Any

from botocore import exceptions as sdk

from bellhop.errors import (
    BellhopError,
    BusyError,
    CloudDeniedError,
    InvalidError,
    MissingError,
    StaleError,
    TemporaryError,
    ThrottledError,
    TooLargeError,
    UnreachableError,
)

Row = tuple[type[BellhopError], str]

_SLOWER: Row = (ThrottledError, "AWS asks to slow down")
_FAILED: Row = (UnreachableError, "AWS failed")
_BUSY: Row = (BusyError, "somebody else is writing it just now")
_STALE: Row = (StaleError, "something else is there by now; read it again")
_INVALID: Row = (InvalidError, "AWS does not take what was sent")
_TOO_LARGE: Row = (TooLargeError, "it is larger than AWS takes")
_DENIED: Row = (CloudDeniedError, "AWS denies it; give the role or the user this right")
_NOBODY: Row = (CloudDeniedError, "AWS does not accept the credentials; log in again")
_ABSENT: Row = (TemporaryError, "a part of the installation is not there; apply Terraform again")
_KEY: Row = (TemporaryError, "the installation's KMS key cannot be used; look at its state")
_QUOTA: Row = (TemporaryError, "a quota of the account is used up; ask AWS to raise it")
_SETTING: Row = (TemporaryError, "AWS' SDK is not set up for it; look at region and endpoint")
_SILENT: Row = (UnreachableError, "AWS does not answer")

_ROWS: tuple[tuple[Row, str], ...] = (
    (
        _SLOWER,
        """BandwidthLimitExceeded EC2ThrottledException KMS.ThrottlingException KmsThrottled
        OverLimit PriorRequestNotComplete ProvisionedThroughputExceededException
        RequestLimitExceeded RequestThrottled RequestThrottledException SlowDown
        ThrottledException Throttling ThrottlingException TooManyRequestsException""",
    ),
    (
        _FAILED,
        """BadDigest InternalError InternalFailure InternalServerError InternalServiceError
        RequestTimeout RequestTimeoutException ServerException ServiceUnavailable
        ServiceUnavailableException XAmzContentSHA256Mismatch""",
    ),
    (
        _BUSY,
        """ConditionalRequestConflict OperationAborted ParameterAlreadyExists
        ReplicatedWriteConflictException TooManyUpdates TransactionConflictException
        TransactionInProgressException""",
    ),
    (
        _STALE,
        """ConditionalCheckFailedException InvalidNextToken InvalidNextTokenException
        MessageNotInflight PreconditionFailed PreconditionNotMetException
        ReceiptHandleIsInvalid ResourceExistsException""",
    ),
    (
        _INVALID,
        """BatchEntryIdsNotDistinct ClientException EmptyBatchRequest
        HierarchyLevelLimitExceededException HierarchyTypeMismatchException
        IncompatiblePolicyException InvalidAddress InvalidAllowedPatternException
        InvalidAttributeName InvalidBatchEntryId InvalidFilterKey InvalidFilterOption
        InvalidFilterValue InvalidIdFormat InvalidMessageContents InvalidParameterCombination
        InvalidParameterException InvalidParameterValue InvalidPolicyAttributeException
        InvalidPolicyTypeException InvalidRequest InvalidRequestException InvalidWriteOffset
        MissingParameter MalformedPolicyDocumentException ParameterMaxVersionLimitExceeded
        ParameterPatternMismatchException PoliciesLimitExceededException SerializationException
        TooManyEntriesInBatchRequest TooManyParts UnsupportedOperation UnsupportedParameterType
        ValidationError ValidationException""",
    ),
    (
        _TOO_LARGE,
        """BatchRequestTooLong EntityTooLarge ItemCollectionSizeLimitExceededException
        KeyTooLongError MessageTooLong RequestEntityTooLarge""",
    ),
    ((MissingError, "it is not there"), "NoSuchKey"),
    (
        _DENIED,
        """AccessDenied AccessDeniedException AllAccessDisabled InvalidSecurity
        KMS.AccessDeniedException KMS.OptInRequired KmsAccessDenied KmsOptInRequired
        NotAuthorized OptInRequired UnauthorizedOperation""",
    ),
    (
        _NOBODY,
        """ExpiredToken ExpiredTokenException IncompleteSignature InvalidAccessKeyId
        InvalidClientTokenId InvalidSignatureException InvalidToken MissingAuthenticationToken
        RequestExpired SignatureDoesNotMatch UnrecognizedClientException""",
    ),
    (
        (TemporaryError, "this machine's clock and AWS' differ; set it right"),
        "RequestInTheFuture RequestTimeTooSkewed",
    ),
    (
        _ABSENT,
        """NoSuchBucket NonExistentQueue ParameterNotFound ParameterVersionNotFound
        QueueDoesNotExist ResourceNotFoundException""",
    ),
    ((TemporaryError, "it was archived; restore it in S3"), "InvalidObjectState"),
    (
        _KEY,
        """DecryptionFailure EncryptionFailure EncryptionTypeMismatch InvalidKeyId KmsDisabled
        KMS.DisabledException KMS.InvalidStateException KMS.NotFoundException KmsInvalidKeyUsage
        KmsInvalidState KmsNotFound""",
    ),
    (_QUOTA, "LimitExceededException ParameterLimitExceeded QuotaExceededException"),
)

CODES: Mapping[str, Row] = {code: row for row, codes in _ROWS for code in codes.split()}
"""By the code of AWS' answer."""

ABSENT = frozenset(code for code, row in CODES.items() if row is _ABSENT)
"""The codes that say of a part of the installation that it is not there."""

STATUSES: Mapping[int, Row] = {
    HTTPStatus.UNAUTHORIZED: _NOBODY,
    HTTPStatus.FORBIDDEN: _DENIED,
    HTTPStatus.NOT_FOUND: _ABSENT,
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: _TOO_LARGE,
    HTTPStatus.TOO_MANY_REQUESTS: _SLOWER,
}
"""By the status of an answer whose code is not known; any other below 500 is `_SETTING`."""

CLASSES: Mapping[type[Exception], Row] = {
    sdk.NoCredentialsError: _NOBODY,
    sdk.PartialCredentialsError: _NOBODY,
    sdk.NoAuthTokenError: _NOBODY,
    sdk.TokenRetrievalError: _NOBODY,
    sdk.SSOError: _NOBODY,
    sdk.LoginError: _NOBODY,
    sdk.RefreshWithMFAUnsupportedError: _NOBODY,
    sdk.UnknownCredentialError: _NOBODY,
    sdk.ProfileNotFound: _NOBODY,
    sdk.CredentialRetrievalError: _SILENT,
    sdk.MetadataRetrievalError: _SILENT,
    sdk.HTTPClientError: _SILENT,
    sdk.ConnectionError: _SILENT,
    sdk.IncompleteReadError: _SILENT,
    sdk.ChecksumError: _SILENT,
    sdk.FlexibleChecksumError: _SILENT,
    sdk.CapacityNotAvailableError: _SLOWER,
    sdk.ParamValidationError: _INVALID,
    sdk.BotoCoreError: _SETTING,
    OSError: _SILENT,
}
"""By class, the nearest of an exception's ancestors, where nobody answered."""

_DELAY = timedelta(seconds=2)
_LONGEST_DELAY = timedelta(minutes=5)


def translate(error: Exception, doing: str) -> BellhopError:
    """Return Bellhop's error for one of AWS' or its SDK's, met while `doing` something."""
    if not isinstance(error, sdk.ClientError):
        kind, why = next(CLASSES[each] for each in type(error).__mro__ if each in CLASSES)
        return kind(f"cannot {doing}: {why}", reason=type(error).__name__)
    metadata = error.response.get("ResponseMetadata", {})
    code = code_of(error)
    kind, why = CODES.get(code) or _row_of_status(metadata.get("HTTPStatusCode", 0))
    context = {"reason": code, "request": metadata.get("RequestId", "")}
    if kind is ThrottledError:
        return ThrottledError(f"cannot {doing}: {why}", delay=_delay(metadata), **context)
    return kind(f"cannot {doing}: {why} ({code})", **context)


def code_of(error: sdk.ClientError) -> str:
    """Return the code of an answer, without the name space that some services put before it."""
    code = str(error.response.get("Error", {}).get("Code", ""))
    return code.rpartition("#")[2].removeprefix("AWS.SimpleQueueService.")


def _row_of_status(status: int) -> Row:
    failed = status >= HTTPStatus.INTERNAL_SERVER_ERROR
    return STATUSES.get(status, _FAILED if failed else _SETTING)


def _delay(metadata: Mapping[str, Any]) -> timedelta:
    seconds = str(metadata.get("HTTPHeaders", {}).get("retry-after", ""))
    if not (seconds.isascii() and seconds.isdigit()):
        return _DELAY
    return min(timedelta(seconds=int(seconds[:6])), _LONGEST_DELAY)
