"""Hostile requests, and those that the description of the API allows: each gets an answer that is named, none harms.

What is short here, `make serve-test` does at length.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from typing import Any

import pytest
from described_requests import bodies, names_answer
from hostile_requests import hostile, send
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from served import Served, names

POSTS = ["/translate", "/detect", "/seqtool/translate"]
STATUSES = {100, 200, 206, 400, 403, 404, 405, 408, 413, 416, 431, 503}  # of which no request below is told 500


@pytest.fixture(scope="module")
def server(served_run: Path) -> Iterator[Served]:
    with Served(*names(served_run), "--max-chars", 3000, "--no-access-log") as server:
        yield server
        assert server.log('"error"') == []  # where a bug is logged
        assert server.translate("two dogs play") == {"translatedText": "zwei Hunde spielen"}


def storm(server: Served, n_requests: int, seed: int, n_clients: int = 8, patience: float = 0.2) -> int:
    """Send hostile requests from several clients at a time; return how many were answered."""
    host, port = server.address.removeprefix("http://").split(":")
    draws = [Random(seed + client) for client in range(n_clients)]

    def ask(draw: Random) -> int:
        n_answered = 0
        for _ in range(n_requests // n_clients):
            request = hostile(draw)
            answers = send((host, int(port)), request, patience)
            assert set(answers.statuses) <= STATUSES, (request, answers)
            n_answered += bool(answers.statuses)
        return n_answered

    with ThreadPoolExecutor(n_clients) as pool:
        return sum(pool.map(ask, draws))


def check_described_requests(server: Served, n_requests: int) -> None:
    """Send requests that the description allows; each answer must be one that it names."""
    paths = server.ask("/spec", "GET").json()["paths"]
    asked = st.sampled_from(POSTS).flatmap(lambda path: st.tuples(st.just(path), bodies(paths[path]["post"])))

    @settings(max_examples=n_requests, deadline=None, suppress_health_check=list(HealthCheck), database=None)
    @given(asked)
    def check(request: tuple[str, Any]) -> None:
        path, body = request
        answer = server.ask(path, json=body)
        assert names_answer(paths[path]["post"], answer.status_code, answer.json()), answer.text

    check()


def test_hostile_requests_get_no_answer_500_and_do_no_harm(server: Served) -> None:
    assert storm(server, 320, seed=1) > 160


def test_what_the_description_allows_gets_an_answer_that_it_names(server: Served) -> None:
    check_described_requests(server, 60)
