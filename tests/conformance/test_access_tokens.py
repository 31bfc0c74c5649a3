"""Tokens of ServiceAccounts: asked for, used, bound, reviewed, and worthless in time."""

from __future__ import annotations

import base64
import json
from typing import Any
from uuid import uuid4

import pytest

from support.api.kubeapi import Answer, KubeApi
from support.waiting import eventually

TOKEN_REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"
ISSUER_PREFIX = "https://"


@pytest.fixture
def account(api: KubeApi, namespace: str) -> str:
    """A ServiceAccount; gives its path."""
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    api.made(path, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot"}})
    return f"{path}/robot"


@pytest.fixture
def secret(api: KubeApi, namespace: str) -> dict[str, Any]:
    value = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "anchor"}}
    return api.made(f"/api/v1/namespaces/{namespace}/secrets", value)


def ask(api: KubeApi, account: str, **spec: Any) -> Answer:
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
    return api.post(f"{account}/token", body)


def token_of(answer: Answer) -> str:
    assert answer.status == 201, answer.body
    return str(answer.json["status"]["token"])


def claims(token: str) -> dict[str, Any]:
    payload = token.split(".")[1]
    found: dict[str, Any] = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    return found


def review(api: KubeApi, token: str, **more: Any) -> dict[str, Any]:
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token, **more}}
    answer = api.post(TOKEN_REVIEWS, body)
    assert answer.status == 201, answer.body
    found: dict[str, Any] = answer.json["status"]
    return found


def whoami(api: KubeApi) -> Answer:
    """Who the server takes one for; kube-apiserver remembers a good token for ten seconds."""
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    return api.post("/apis/authentication.k8s.io/v1/selfsubjectreviews", body)


def bound_to(value: dict[str, Any], kind: str) -> dict[str, str]:
    meta = value["metadata"]
    return {"apiVersion": "v1", "kind": kind, "name": meta["name"], "uid": meta["uid"]}


def test_token_names_the_account(api: KubeApi, namespace: str, account: str) -> None:
    uid = api.get(account).json["metadata"]["uid"]
    found = claims(token_of(ask(api, account)))
    assert found["sub"] == f"system:serviceaccount:{namespace}:robot"
    assert found["kubernetes.io"] == {"namespace": namespace, "serviceaccount": {"name": "robot", "uid": uid}}
    assert found["iss"].startswith(ISSUER_PREFIX)
    assert found["aud"] == [found["iss"]]
    assert found["exp"] - found["iat"] == 3600
    assert found["nbf"] == found["iat"]
    assert found["jti"]


def test_answer_repeats_the_request_with_defaults(api: KubeApi, namespace: str, account: str) -> None:
    answer = ask(api, account).json
    assert (answer["kind"], answer["apiVersion"]) == ("TokenRequest", "authentication.k8s.io/v1")
    assert (answer["metadata"]["name"], answer["metadata"]["namespace"]) == ("robot", namespace)
    assert answer["metadata"]["uid"] == api.get(account).json["metadata"]["uid"]
    assert answer["spec"]["expirationSeconds"] == 3600
    assert answer["spec"]["audiences"] == claims(answer["status"]["token"])["aud"]
    assert answer["spec"]["boundObjectRef"] is None
    assert answer["status"]["expirationTimestamp"].endswith("Z")


def test_token_says_who_one_is(api: KubeApi, namespace: str, account: str) -> None:
    token = token_of(ask(api, account))
    info = whoami(api.with_token(token)).json["status"]["userInfo"]
    assert info["username"] == f"system:serviceaccount:{namespace}:robot"
    assert info["uid"] == api.get(account).json["metadata"]["uid"]
    assert info["groups"] == ["system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated"]
    assert info["extra"]["authentication.kubernetes.io/credential-id"] == [f"JTI={claims(token)['jti']}"]


def test_token_gives_no_right_by_itself(api: KubeApi, namespace: str, account: str) -> None:
    robot = api.with_token(token_of(ask(api, account)))
    answer = robot.get(f"/api/v1/namespaces/{namespace}/pods")
    assert (answer.status, answer.reason) == (403, "Forbidden")
    assert answer.message == (
        f'pods is forbidden: User "system:serviceaccount:{namespace}:robot" cannot list resource "pods" in API group '
        f'"" in the namespace "{namespace}"'
    )


def test_duration_is_kept(api: KubeApi, account: str) -> None:
    found = claims(token_of(ask(api, account, expirationSeconds=1200)))
    assert found["exp"] - found["iat"] == 1200


@pytest.mark.parametrize(
    ("seconds", "why"),
    [(599, "may not specify a duration less than 10 minutes"), ((1 << 32) + 1, "larger than 2^32 seconds")],
)
def test_impossible_durations_are_refused(api: KubeApi, account: str, seconds: int, why: str) -> None:
    answer = ask(api, account, expirationSeconds=seconds)
    assert (answer.status, answer.reason) == (422, "Invalid")
    assert answer.message.startswith(
        'TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: Invalid'
    )
    assert why in answer.message


def test_token_for_others_is_not_good_here(api: KubeApi, account: str) -> None:
    token = token_of(ask(api, account, audiences=["vault"]))
    assert claims(token)["aud"] == ["vault"]
    answer = whoami(api.with_token(token))
    assert (answer.status, answer.reason) == (401, "Unauthorized")


def test_review_tells_whose_token_it_is(api: KubeApi, namespace: str, account: str) -> None:
    token = token_of(ask(api, account))
    status = review(api, token)
    assert status["authenticated"] is True
    assert status["user"]["username"] == f"system:serviceaccount:{namespace}:robot"
    assert status["audiences"] == claims(token)["aud"]


def test_review_for_an_audience(api: KubeApi, account: str) -> None:
    token = token_of(ask(api, account, audiences=["vault", "bank"]))
    status = review(api, token, audiences=["bank", "elsewhere"])
    assert status["authenticated"] is True
    assert status["audiences"] == ["bank"]
    assert "authenticated" not in review(api, token)
    assert "authenticated" not in review(api, token, audiences=["elsewhere"])


@pytest.mark.parametrize("token", ["nonsense", "a.b.c"])
def test_review_of_nonsense(api: KubeApi, token: str) -> None:
    status = review(api, token)
    assert "authenticated" not in status
    assert status["user"] == {}
    assert "invalid bearer token" in status["error"]


def test_review_needs_a_token(api: KubeApi) -> None:
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {}}
    answer = api.post(TOKEN_REVIEWS, body)
    assert (answer.status, answer.message) == (400, "token is required for TokenReview in authentication")


def test_changed_token_is_no_longer_good(api: KubeApi, account: str) -> None:
    token = token_of(ask(api, account))
    head, payload, signature = token.split(".")
    other = base64.urlsafe_b64encode(json.dumps(claims(token) | {"sub": "x"}).encode()).rstrip(b"=").decode()
    assert payload != other
    assert whoami(api.with_token(f"{head}.{other}.{signature}")).status == 401


def test_token_ends_with_its_account(api: KubeApi, account: str) -> None:
    assert whoami(api.with_token(token_of(ask(api, account)))).status == 201
    unused = api.with_token(token_of(ask(api, account)))
    api.delete(account)
    eventually(lambda: whoami(unused).status == 401)


def test_token_is_not_good_for_another_account_of_the_name(api: KubeApi, account: str) -> None:
    robot = api.with_token(token_of(ask(api, account)))
    api.delete(account)
    value = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot"}}
    api.made(account.removesuffix("/robot"), value)
    eventually(lambda: whoami(robot).status == 401)


def test_token_ends_with_the_secret_it_is_bound_to(
    api: KubeApi, namespace: str, account: str, secret: dict[str, Any]
) -> None:
    token = token_of(ask(api, account, boundObjectRef=bound_to(secret, "Secret")))
    meta = secret["metadata"]
    assert claims(token)["kubernetes.io"]["secret"] == {"name": "anchor", "uid": meta["uid"]}
    assert whoami(api.with_token(token)).status == 201
    unused = api.with_token(token_of(ask(api, account, boundObjectRef=bound_to(secret, "Secret"))))
    api.delete(f"/api/v1/namespaces/{namespace}/secrets/anchor")
    eventually(lambda: whoami(unused).status == 401)


def test_bound_object_must_be_the_one_that_is_meant(api: KubeApi, account: str, secret: dict[str, Any]) -> None:
    answer = ask(api, account, boundObjectRef=bound_to(secret, "Secret") | {"uid": str(uuid4())})
    assert (answer.status, answer.reason) == (409, "Conflict")
    assert "does not match the UID in record" in answer.message


def test_bound_object_must_exist(api: KubeApi, account: str) -> None:
    answer = ask(api, account, boundObjectRef={"apiVersion": "v1", "kind": "Secret", "name": "gone"})
    assert (answer.status, answer.message) == (404, 'secrets "gone" not found')


def test_only_some_kinds_can_be_bound_to(api: KubeApi, account: str) -> None:
    answer = ask(api, account, boundObjectRef={"apiVersion": "v1", "kind": "ConfigMap", "name": "x"})
    assert (answer.status, answer.message) == (400, "cannot bind token to object of type /v1, Kind=ConfigMap")


def test_pod_must_run_as_the_account(api: KubeApi, namespace: str, account: str) -> None:
    spec = {"containers": [{"name": "c", "image": "i"}], "serviceAccountName": "default"}
    pods = f"/api/v1/namespaces/{namespace}/pods"
    eventually(lambda: api.get(f"/api/v1/namespaces/{namespace}/serviceaccounts/default").status == 200)
    api.made(pods, {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec})
    answer = ask(api, account, boundObjectRef={"apiVersion": "v1", "kind": "Pod", "name": "p"})
    assert answer.status == 400
    assert 'cannot bind token for serviceaccount "robot" to pod running with different' in answer.message


def test_token_may_be_bound_to_a_pod(api: KubeApi, namespace: str, account: str) -> None:
    spec = {"containers": [{"name": "c", "image": "i"}], "serviceAccountName": "robot"}
    pods = f"/api/v1/namespaces/{namespace}/pods"
    pod = api.made(pods, {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec})
    robot = api.with_token(token_of(ask(api, account, boundObjectRef=bound_to(pod, "Pod"))))
    extra = whoami(robot).json["status"]["userInfo"]["extra"]
    assert extra["authentication.kubernetes.io/pod-name"] == ["p"]
    assert extra["authentication.kubernetes.io/pod-uid"] == [pod["metadata"]["uid"]]


def test_token_may_be_bound_to_a_node(api: KubeApi, account: str) -> None:
    name = f"node-{uuid4().hex[:8]}"
    node = api.made("/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}})
    robot = api.with_token(token_of(ask(api, account, boundObjectRef=bound_to(node, "Node"))))
    extra = whoami(robot).json["status"]["userInfo"]["extra"]
    assert extra["authentication.kubernetes.io/node-name"] == [name]
    unused = api.with_token(token_of(ask(api, account, boundObjectRef=bound_to(node, "Node"))))
    api.delete(f"/api/v1/nodes/{name}")
    eventually(lambda: whoami(unused).status == 401)


def test_account_must_exist(api: KubeApi, account: str) -> None:
    answer = ask(api, account.replace("robot", "nobody"))
    assert (answer.status, answer.message) == (404, 'serviceaccounts "nobody" not found')


def test_account_must_be_the_one_that_is_meant(api: KubeApi, account: str) -> None:
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "metadata": {"name": "other"}, "spec": {}}
    answer = api.post(f"{account}/token", body)
    assert answer.status == 422
    assert "metadata.name" in answer.message
    body["metadata"] = {"uid": str(uuid4())}
    answer = api.post(f"{account}/token", body)
    assert (answer.status, answer.reason) == (409, "Conflict")


def test_asking_for_tokens_needs_the_right(api: KubeApi, account: str, namespace: str) -> None:
    robot = api.with_token(token_of(ask(api, account)))
    answer = ask(robot, account)
    assert answer.status == 403
    assert 'cannot create resource "serviceaccounts/token"' in answer.message


def test_discovery_shows_tokens_and_reviews(api: KubeApi) -> None:
    resources = {one["name"]: one for one in api.get("/api/v1").json["resources"]}
    token = resources["serviceaccounts/token"]
    assert (token["kind"], token["group"], token["version"]) == ("TokenRequest", "authentication.k8s.io", "v1")
    assert token["verbs"] == ["create"]
    names = {one["name"] for one in api.get("/apis/authentication.k8s.io/v1").json["resources"]}
    assert names == {"selfsubjectreviews", "tokenreviews"}
    names = {one["name"] for one in api.get("/apis/authorization.k8s.io/v1").json["resources"]}
    assert names == {
        "localsubjectaccessreviews", "selfsubjectaccessreviews", "selfsubjectrulesreviews", "subjectaccessreviews",
    }  # fmt: skip


def test_issuer_tells_how_to_check_tokens(api: KubeApi, account: str) -> None:
    token = token_of(ask(api, account))
    robot = api.with_token(token)
    configuration = robot.get("/.well-known/openid-configuration").json
    assert configuration["issuer"] == claims(token)["iss"]
    assert configuration["jwks_uri"].endswith("/openid/v1/jwks")
    assert configuration["response_types_supported"] == ["id_token"]
    answer = robot.get("/openid/v1/jwks")
    assert answer.headers["Content-Type"] == "application/jwk-set+json"
    header = json.loads(base64.urlsafe_b64decode(token.split(".")[0] + "=="))
    assert header["kid"] in {key["kid"] for key in answer.json["keys"]}


def test_every_namespace_has_a_default_account_and_the_root_certificate(api: KubeApi, namespace: str) -> None:
    base = f"/api/v1/namespaces/{namespace}"
    eventually(lambda: api.get(f"{base}/serviceaccounts/default").status == 200)
    eventually(lambda: api.get(f"{base}/configmaps/kube-root-ca.crt").status == 200)
    text = api.get(f"{base}/configmaps/kube-root-ca.crt").json["data"]["ca.crt"]
    assert text.startswith("-----BEGIN CERTIFICATE-----")


def test_default_account_comes_back(api: KubeApi, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/default"
    uid = eventually(lambda: api.get(path).json.get("metadata", {}).get("uid"))
    api.delete(path)
    eventually(lambda: api.get(path).json.get("metadata", {}).get("uid") not in {None, uid})


def test_root_certificate_is_put_back(api: KubeApi, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps/kube-root-ca.crt"
    data = eventually(lambda: api.get(path).json.get("data"))
    api.patch(path, {"data": {"ca.crt": "forged"}})
    eventually(lambda: api.get(path).json["data"] == data)


@pytest.fixture
def kept_token(api: KubeApi, namespace: str, account: str) -> dict[str, Any]:
    """A Secret that holds a token of the account."""
    meta = {"name": "kept", "annotations": {"kubernetes.io/service-account.name": "robot"}}
    value = {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "type": "kubernetes.io/service-account-token"}
    path = f"/api/v1/namespaces/{namespace}/secrets"
    api.made(path, value)
    eventually(lambda: "token" in (api.get(f"{path}/kept").json.get("data") or {}))
    return api.get(f"{path}/kept").json


def test_token_in_a_secret(api: KubeApi, namespace: str, kept_token: dict[str, Any]) -> None:
    data = {key: base64.b64decode(value).decode() for key, value in kept_token["data"].items()}
    assert data["namespace"] == namespace
    assert data["ca.crt"].startswith("-----BEGIN CERTIFICATE-----")
    assert kept_token["metadata"]["annotations"]["kubernetes.io/service-account.uid"]
    robot = api.with_token(data["token"])
    name = whoami(robot).json["status"]["userInfo"]["username"]
    assert name == f"system:serviceaccount:{namespace}:robot"


def test_secret_goes_with_the_account(api: KubeApi, namespace: str, account: str, kept_token: dict[str, Any]) -> None:
    api.delete(account)
    eventually(lambda: api.get(f"/api/v1/namespaces/{namespace}/secrets/kept").status == 404)
