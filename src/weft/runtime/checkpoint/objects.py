"""Object storage as a checkpoint needs it: S3 and what speaks its protocol.

Files are read, listed and written through `pyarrow.fs`. It cannot write an object only if it is absent, so
conditional puts go through `obstore` (docs/decisions/0023). Both get address, region and credentials from the
environment, as every client of S3 does: AWS_ENDPOINT_URL, AWS_REGION, AWS_ACCESS_KEY_ID and so on, or the role
of the machine. Credentials are never part of a checkpoint's address, which messages and plans show.

Storage that does not answer is asked again for `patience` seconds (WEFT_STORAGE_PATIENCE). A conditional put
is given up earlier, so that it ends while the lease behind it still holds.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property, lru_cache
from typing import Any
from urllib.parse import urlsplit

from pyarrow import fs

from weft.errors import CheckpointError

SCHEMES = ("s3", "s3a")

PUT_SECONDS = 10
"""How long a conditional put is tried."""

_CONNECT_SECONDS, _REQUEST_SECONDS = 3, 5
_FIRST_PAUSE = 0.025
"""Seconds before pyarrow's first repetition; every further pause is twice as long."""

_UNANSWERED = ("NETWORK_CONNECTION", "SERVICE_UNAVAILABLE", "SLOW_DOWN", "REQUEST_TIMEOUT")
"""What pyarrow says of a request that was not answered, or that the storage was too busy for."""


@dataclass(frozen=True)
class Address:
    """Where a checkpoint is in object storage."""

    bucket: str
    prefix: str

    @property
    def path(self) -> str:
        """As `pyarrow.fs` takes it."""
        return f"{self.bucket}/{self.prefix}" if self.prefix else self.bucket

    @property
    def uri(self) -> str:
        return f"s3://{self.path}"


def address(uri: str) -> Address:
    """The address of a folder, checked.

    >>> address("s3a://bucket/a/b/")
    Address(bucket='bucket', prefix='a/b')
    >>> address("s3://key:word@bucket/a")
    Traceback (most recent call last):
    ...
    weft.errors.CheckpointError: [BAD_ADDRESS] ...
    """
    parts = urlsplit(uri)
    if "@" in parts.netloc:
        detail = "it must not hold credentials, which would be shown; set AWS_ACCESS_KEY_ID and "
        detail += "AWS_SECRET_ACCESS_KEY in the environment"
        raise CheckpointError("BAD_ADDRESS", path=f"s3://…@{parts.hostname}", detail=detail)
    if parts.query or parts.fragment:
        detail = "it ends in options; set AWS_ENDPOINT_URL and AWS_REGION in the environment"
        raise CheckpointError("BAD_ADDRESS", path=f"s3://{parts.netloc}{parts.path}", detail=detail)
    if not parts.netloc:
        raise CheckpointError("BAD_ADDRESS", path=uri, detail="it names no bucket")
    return Address(parts.netloc, parts.path.strip("/"))


def patience() -> float:
    """How many seconds storage that does not answer is asked again."""
    text = os.environ.get("WEFT_STORAGE_PATIENCE", "60")
    try:
        seconds = float(text)
        if not math.isfinite(seconds):
            raise ValueError(f"{text} is not a number of seconds")
        return max(0.0, seconds)
    except ValueError as error:
        detail = "give the environment variable a number of seconds"
        raise CheckpointError(
            "BAD_ADDRESS", path=f"WEFT_STORAGE_PATIENCE={text}", detail=detail
        ) from error


def filesystem(place: Address) -> fs.S3FileSystem:
    """The storage for `pyarrow.fs`."""
    endpoint, region = _where(place.bucket)
    return _filesystem(endpoint, region, patience())


def _where(bucket: str) -> tuple[str | None, str]:
    """The address of the service if it is not Amazon's, and the region."""
    known = os.environ
    endpoint = known.get("AWS_ENDPOINT_URL_S3") or known.get("AWS_ENDPOINT_URL") or None
    region = known.get("AWS_REGION") or known.get("AWS_DEFAULT_REGION")
    if region is None:
        region = "us-east-1" if endpoint else _region_of(bucket)
    return endpoint, region


@lru_cache
def _region_of(bucket: str) -> str:
    try:
        return str(fs.resolve_s3_region(bucket))
    except OSError as error:
        raise unreachable(f"s3://{bucket}", error) from error


@lru_cache
def _filesystem(endpoint: str | None, region: str, seconds: float) -> fs.S3FileSystem:
    tries = 1 + max(0, math.ceil(math.log2(1 + seconds / _FIRST_PAUSE)))
    return fs.S3FileSystem(
        endpoint_override=endpoint,
        region=region,
        connect_timeout=_CONNECT_SECONDS,
        request_timeout=_REQUEST_SECONDS,
        retry_strategy=fs.AwsDefaultS3RetryStrategy(max_attempts=tries),
        allow_delayed_open=True,  # a small file is one request
    )


class Conditional:
    """Puts that depend on what is there, by one request each."""

    def __init__(self, place: Address) -> None:
        self._place, self._uri = place, place.uri

    @cached_property
    def _store(self) -> Any:
        from obstore.store import S3Store

        place = self._place
        endpoint, region = _where(place.bucket)
        settings: dict[str, Any] = {"endpoint": endpoint} if endpoint else {}
        return S3Store(
            place.bucket,
            prefix=place.prefix or None,
            region=region,
            client_options={
                "allow_http": bool(endpoint and endpoint.startswith("http://")),
                "connect_timeout": timedelta(seconds=_CONNECT_SECONDS),
                "timeout": timedelta(seconds=_REQUEST_SECONDS),
            },
            retry_config={
                "max_retries": 1000,
                "retry_timeout": timedelta(seconds=min(PUT_SECONDS, patience())),
                "backoff": {
                    "init_backoff": timedelta(seconds=0.1),
                    "max_backoff": timedelta(seconds=1),
                    "base": 2.0,
                },
            },
            **settings,
        )

    def get(self, name: str) -> tuple[bytes, str] | None:
        """An object and its tag, which changes with its content; None if it is absent."""
        import obstore
        from obstore.exceptions import BaseError

        try:
            found = obstore.get(self._store, name)
            return bytes(found.bytes()), str(found.meta["e_tag"])
        except FileNotFoundError:
            return None
        except BaseError as error:
            raise unreachable(f"{self._uri}/{name}", error) from error

    def put(self, name: str, data: bytes, tag: str | None) -> str | None:
        """Write an object if it has this tag, or, without one, if it is absent. Its new tag, None if it was
        not written. A put whose answer was lost is recognized by its content when it is repeated."""
        import obstore
        from obstore.exceptions import AlreadyExistsError, BaseError, PreconditionError

        mode: Any = "create" if tag is None else {"e_tag": tag}
        try:
            return str(obstore.put(self._store, name, data, mode=mode)["e_tag"])
        except (AlreadyExistsError, PreconditionError):
            stored = self.get(name)
            return stored[1] if stored is not None and stored[0] == data else None
        except BaseError as error:
            raise unreachable(f"{self._uri}/{name}", error) from error


def is_unanswered(error: OSError) -> bool:
    """Whether a request of pyarrow got no answer."""
    return any(sign in str(error) for sign in _UNANSWERED)


def unreachable(path: str, error: Exception) -> CheckpointError:
    """The error for storage that does not answer, or refuses."""
    detail = str(error).split("\n", 1)[0].rstrip(". ")
    return CheckpointError("UNREACHABLE", path=path, detail=detail)
