"""Every life is lived on the embedded API and on a real API server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.capi.life import Place
from support.capi.lifesites import LiveSite, embedded, real, strict
from support.programs.kubectl import NoKubectl, find_kubectl
from support.skips import missing_program


@pytest.fixture(scope="package", params=["embedded", "real", pytest.param("strict", marks=pytest.mark.soak)])
def live_site(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveSite]:
    """One site for all lives."""
    try:
        find_kubectl()
    except NoKubectl as error:
        missing_program(error)
    folder = tmp_path_factory.mktemp(request.param)
    if request.param == "embedded":
        with embedded(folder) as site:
            yield site
    elif request.param == "strict":
        with strict(folder) as site:
            yield site
    else:
        with real(request.getfixturevalue("real_cluster")) as site:
            yield site


@pytest.fixture
async def place(live_site: LiveSite, request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """A namespace of a test's own."""
    name = "".join(char if char.isalnum() else "-" for char in request.node.name.lower()).strip("-")
    home, namespace = tmp_path / "home", name[-60:].strip("-")
    return await Place.make(live_site.kubeconfig, home, namespace, live_site.end_of_log)
