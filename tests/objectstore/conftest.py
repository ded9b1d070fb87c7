"""One server for all tests of object storage."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.objectstore.server import ObjectServer, running_server


@pytest.fixture(scope="package")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObjectServer]:
    with running_server(tmp_path_factory.mktemp("s3")) as server:
        yield server
