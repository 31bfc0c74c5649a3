"""The site of namespace machines that tests with real kubeadm share."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from support.kubeadm.cluster import RELEASE, node_artefacts
from support.kubeadm.sharedplant import SharedPlant, shared_plant


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests on the shared site come last: it is there for them alone."""
    items.sort(key=lambda item: "plant" in getattr(item, "fixturenames", ()))


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def plant(tmp_path_factory: pytest.TempPathFactory, kubectl_binary: Path) -> AsyncIterator[SharedPlant]:
    """One `ironbell up`, with servers for each test; all are off at first."""
    folder = tmp_path_factory.mktemp("plant")
    async with shared_plant(folder, kubectl_binary, node_artefacts(RELEASE)) as made:
        yield made
