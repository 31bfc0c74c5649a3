"""A rendered text becomes tasks and actions, or all its faults at once."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ironbell.api.tinkerbell.workflow import Namespaces
from ironbell.contract.servers.image_reference import image_problem
from ironbell.contract.servers.workflow_document import DocumentError, parse_document

_TEXT = """
version: "0.1"
name: install
global_timeout: 1800
tasks:
  - name: os
    worker: 52:54:00:aa:bb:cc
    volumes: [/dev:/dev]
    environment: {A: 010, B: yes, C: null}
    actions:
      - name: stream
        image: quay.io/tinkerbell/actions/image2disk:latest
        timeout: 600.0
        command: [a, 1.0, true]
        environment: {DEST: /dev/sda}
        pid: host
        namespaces: {network: host}
        retries: 3
      - {name: reboot, image: reboot}
"""


def test_places_keep_what_was_written() -> None:
    document = parse_document(_TEXT)
    (task,) = document.tasks
    stream, reboot = task.actions
    assert (document.name, document.global_timeout_s) == ("install", 1800)
    assert (task.name, task.agent_id, task.volumes) == ("os", "52:54:00:aa:bb:cc", ["/dev:/dev"])
    assert task.environment == {"A": "010", "B": "yes", "C": ""}
    assert (stream.timeout, stream.command, stream.pid) == (600, ["a", "1.0", "true"], "host")
    assert stream.namespaces == Namespaces(network="host")
    assert (reboot.image, reboot.timeout, reboot.namespaces) == ("reboot", 0, None)


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("name: install", "name: ''", "name cannot be empty or have more than 200 characters"),
        ("name: install", f"name: {'x' * 200}", "name cannot be empty or have more than 200 characters"),
        ("name: reboot", "name: stream", "two actions in a task cannot have same name: stream"),
        ("image: reboot", "image: ''", "invalid action image ()"),
        ("image: reboot", "image: a b", "invalid action image (a b): invalid reference format"),
        ("worker: 52:54:00:aa:bb:cc", "worker:", "tasks[0].worker: is empty after rendering"),
        ("600.0", "'600'", "line 13: tasks[0].actions[0].timeout must be a whole number without quotes"),
        ("600.0", "1.5", "timeout must be a whole number"),
        ("600.0", "9223372036854775808", "timeout must be a whole number"),
        ("[a, 1.0, true]", "sleep", "line 14: tasks[0].actions[0].command must be a list"),
        ("{DEST: /dev/sda}", "[DEST]", "line 15: tasks[0].actions[0].environment must be a mapping"),
        ("/dev/sda}", "[x]}", "environment.DEST must be a text"),
        ("retries: 3", "on-timeout: 3", "on-timeout must be a list"),
        ('"0.1"', "[1]", "version must be a text"),
        ("retries: 3", "pid: x", "mapping key 'pid' already defined at line 16"),
        ("tasks:", "tasks: x\nother:", "tasks must be a list"),
    ],
)  # fmt: skip
def test_faults_name_place_and_line(old: str, new: str, problem: str) -> None:
    with pytest.raises(DocumentError) as caught:
        parse_document(_TEXT.replace(old, new, 1))
    assert any(problem in found for found in caught.value.problems), caught.value.problems


def test_all_faults_come_at_once() -> None:
    with pytest.raises(DocumentError) as caught:
        parse_document("tasks:\n- {name: a, actions: [{name: x}]}\n- {name: a, worker: w}\n")
    assert len(caught.value.problems) == 4


@pytest.mark.parametrize("text", ["", "~", "[]", "text", "tasks: []", "{"])
def test_what_is_no_document_is_refused(text: str) -> None:
    with pytest.raises(DocumentError):
        parse_document(text)


def test_only_the_first_document_is_read() -> None:
    assert parse_document(f"{_TEXT}\n---\nname: other\n").name == "install"


@given(st.text(alphabet="atsk:nme-wor: []{}\n '\"|&*!<0", max_size=80))
def test_any_text_is_a_document_or_has_faults(text: str) -> None:
    with contextlib.suppress(DocumentError):
        parse_document(text)


@pytest.mark.parametrize(
    "image",
    ["reboot", "alpine:3", "quay.io/tinkerbell/actions/kexec", "localhost:5000/a/b_c:v1", "[::1]:80/x", "A.example/x",
     "ghcr.io/x/y@sha256:" + "0" * 64, "a--b", "library/x"],
)  # fmt: skip
def test_image_names_are_accepted(image: str) -> None:
    assert image_problem(image) == ""


@pytest.mark.parametrize(
    "image",
    ["", "A", "a//b", "a:", "-a", "a b", "f" * 64, "x@sha256:12", "x@md5:" + "0" * 32, "x" * 256, "a/" + "b" * 3000,
     "é", "x@sha256:" + "A" * 64],
)  # fmt: skip
def test_other_texts_are_no_image_names(image: str) -> None:
    assert image_problem(image) != ""


def test_fields_without_effect_are_listed() -> None:
    text = """
version: "0.1"
name: x
tasks:
- name: os
  worker: m
  volumes: [/dev:/dev, "/a:/b"]
  actions:
  - {name: a, image: quay.io/x/image2disk:v1, on-timeout: [sh], volumes: ["/a:/b:ro"]}
  - {name: b, image: writefile, on-failure: [], volumes: ["/dev:/dev:rw", /lib/firmware]}
  - {name: c, image: example.org/own, volumes: ["/a:/b"]}
"""
    assert [found.path for found in parse_document(text).ineffective] == [
        "tasks[0].actions[0].on-timeout",
        "tasks[0].actions[0].volumes",
    ]
