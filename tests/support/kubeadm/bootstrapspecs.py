"""KubeadmConfig specs for comparisons: drawn from a seed, with every field of the API in them sooner or later."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

Draw = Callable[[random.Random], Any]

VERSIONS = ("1.22.17", "v1.28.3", "v1.30.9", "1.31.0-rc.1", "v1.31.0", "v1.36.2")
CERTIFICATES = {
    purpose: {"certificate": f"-----{purpose} certificate-----\n", "key": f"-----{purpose} key-----\n"}
    for purpose in ("ca", "etcd", "proxy", "sa", "apiserver-etcd-client")
}


ADDITIONAL = (
    """\
systemd:
  units:
  - name: kubeadm.service
    enabled: false
    dropins:
    - {name: 10.conf, contents: "[Unit]\\nAfter=a.service\\n"}
""",
    """\
ignition:
  config: {append: [{source: "https://example.org/a.ign", verification: {hash: {function: sha512, sum: @SUM@}}}]}
  timeouts: {http_total: 30}
  security: {tls: {certificate_authorities: [{source: "https://example.org/ca.pem"}]}}
storage:
  files:
  - {path: /etc/a, mode: 0600, user: {id: 1}, contents: {inline: "a b/ü+"}}
  - {path: /etc/b, filesystem: root, overwrite: false, contents: {remote: {url: "https://example.org/b"}}}
  - {path: /etc/c, mode: 0644, append: true, contents: {inline: "more"}}
  directories: [{path: /etc/d, group: {name: wheel}, mode: 0700}]
  links: [{path: /etc/l, target: /etc/a, hard: true}]
  disks:
  - device: /dev/sdy
    wipe_table: true
    partitions: [{label: ROOT, number: 1, size: 1GiB, start: 512MiB, type_guid: linux_filesystem_data}]
  raid: [{name: md, level: raid1, devices: [/dev/sdx, /dev/sdw], spares: 0}]
  filesystems:
  - {name: other, path: /mnt}
  - name: d
    mount: {device: /dev/sdv, format: ext4, create: {force: true, options: [-q]}}
systemd: {units: [{name: a.service, enable: true, mask: true, contents: "[Unit]\\nDescription=a\\n"}]}
networkd:
  units: [{name: a.network, contents: "[Match]\\nName=e*\\n", dropins: [{name: b.conf, contents: "[Match]\\n"}]}]
passwd:
  users: [{name: u, uid: 7, no_create_home: true, system: true}, {name: v, create: {uid: 8, groups: [a]}}]
  groups: [{name: g, gid: 9, system: true}]
""".replace("@SUM@", "ab" * 64),
)


def request(seed: int, *, role: str, format: str = "cloud-config") -> dict[str, Any]:  # noqa: A002
    """One request to render bootstrap data."""
    rng = random.Random(seed)
    version = rng.choice(VERSIONS)
    facts = {
        "name": "one",
        "kubernetes_version": version,
        "control_plane_endpoint": rng.choice(["", "192.0.2.10:6443", "api.example.org:443"]),
        "dns_domain": rng.choice(["", "cluster.local"]),
        "service_subnet": rng.choice(["", "10.96.0.0/12", "10.96.0.0/12,fd00::/108"]),
        "pod_subnet": rng.choice(["", "10.244.0.0/16"]),
    }
    made = spec(rng, is_control_plane=role != "worker")
    if format == "ignition":
        made = for_ignition(made, rng)
    certificates = CERTIFICATES
    if made.get("clusterConfiguration", {}).get("etcd", {}).get("external"):
        # with the key of an external authority upstream writes a file without a path
        certificates = {**CERTIFICATES, "etcd": {**CERTIFICATES["etcd"], "key": ""}}
    return {"role": role, "version": version, "spec": made, "facts": facts, "certificates": certificates}


def spec(rng: random.Random, *, is_control_plane: bool) -> dict[str, Any]:
    """A spec."""
    return fields(
        rng,
        clusterConfiguration=cluster_configuration,
        initConfiguration=init_configuration,
        joinConfiguration=join_configuration if not is_control_plane else join_control_plane,
        files=many(file),
        diskSetup=disk_setup,
        mounts=many(lambda r: [text(r) for _ in range(r.randint(1, 4))]),
        bootCommands=many(command),
        preKubeadmCommands=many(command),
        postKubeadmCommands=many(command),
        users=many(user),
        ntp=lambda r: fields(r, servers=many(text), enabled=boolean),
        verbosity=lambda r: r.choice([0, 5, 10]),
    )


def for_ignition(made: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    """The spec without what is not allowed with Ignition."""
    made = {name: value for name, value in made.items() if name != "bootCommands"} | {"format": "ignition"}
    for one in made.get("users", []):
        one.pop("inactive", None)
    for one in made.get("files", []):
        one.pop("append", None)
        one.setdefault("permissions", "0640")
        # upstream puts contents into a YAML block, which cannot begin with a tab
        if "content" in one:
            one["content"] = one["content"].lstrip("\t")
        if one.get("encoding") not in (None, "base64"):
            del one["encoding"]
        if one.get("encoding") == "base64":
            one["content"] = "aGVsbG8="
    setup = made.get("diskSetup", {})
    for number, one in enumerate(setup.get("filesystems", [])):
        one.pop("partition", None)
        one.pop("replaceFS", None)
        one |= {"label": f"label{number}", "overwrite": rng.random() < 0.5, "filesystem": "ext4"}
        one["device"] = f"/dev/sdz{number}"
    for number, one in enumerate(setup.get("partitions", [])):
        one |= {"device": f"/dev/sd{'abcdefgh'[number]}", "layout": True}
    if "enabled" in made.get("ntp", {}):
        made["ntp"]["enabled"] = True
    labels = [one["label"] for one in setup.get("filesystems", [])]
    made["ignition"] = {"containerLinuxConfig": {"additionalConfig": rng.choice(ADDITIONAL)}}
    made["mounts"] = [
        [label, f"/var/lib/{label}/data", *(["ro", "noatime"] if number else [])] for number, label in enumerate(labels)
    ]
    return made


def fields(rng: random.Random, /, **drawn: Draw) -> dict[str, Any]:
    """Some of these fields."""
    share = rng.choice([0.1, 0.5, 0.9])
    found = {name: draw(rng) for name, draw in drawn.items() if rng.random() < share}
    return {name: value for name, value in found.items() if value not in ({}, [], "")}


def many(draw: Draw, least: int = 1, most: int = 3) -> Draw:
    return lambda rng: [draw(rng) for _ in range(rng.randint(least, most))]


def boolean(rng: random.Random) -> bool:
    return rng.random() < 0.5


def seconds(rng: random.Random) -> int:
    return rng.choice([0, 1, 59, 60, 61, 600, 3600, 3661, 86400])


def text(rng: random.Random) -> str:
    return rng.choice(["a", "value-1", "x.y/z", "10", "true", "a: b", "/dev/sdb1", "üñ", "null", "1e3", "0644"])


def word(rng: random.Random) -> str:
    return rng.choice(["alpha", "beta", "gamma", "delta"])


def path(rng: random.Random) -> str:
    return f"/etc/{word(rng)}/{word(rng)}{rng.randint(0, 999)}.conf"


def command(rng: random.Random) -> str:
    return rng.choice(
        [
            "echo hi",
            'echo "quoted" \\ back',
            "tab\there",
            "line\nbreak",
            "hostnamectl set-hostname {{ ds.meta_data.local_hostname }}",
        ]
    )


def content(rng: random.Random) -> str:
    return rng.choice(
        ["x", "line 1\nline 2\n", "a\n\n  b\n", "key: value\n", "trailing\n\n\n", "#!/bin/sh\nexit 0", "\ttab\n"]
    )


def file(rng: random.Random) -> dict[str, Any]:
    return {"path": path(rng)} | fields(
        rng,
        content=content,
        owner=lambda r: r.choice(["root:root", "root", "www:data", ":group"]),
        permissions=lambda r: r.choice(["0644", "0600", "0755"]),
        encoding=lambda r: r.choice(["base64", "gzip", "gzip+base64"]),
        append=boolean,
    )


def user(rng: random.Random) -> dict[str, Any]:
    return {"name": word(rng)} | fields(  # noqa: S604 - a user's shell
        rng,
        gecos=word,
        groups=lambda r: r.choice(["wheel", "wheel, docker"]),
        homeDir=path,
        inactive=boolean,
        shell=lambda _: "/bin/bash",
        passwd=lambda _: "$6$abc$def",
        primaryGroup=word,
        lockPassword=boolean,
        sudo=lambda _: "ALL=(ALL) NOPASSWD:ALL",
        sshAuthorizedKeys=many(lambda _: "ssh-ed25519 AAAA me@example.org"),
    )


def disk_setup(rng: random.Random) -> dict[str, Any]:
    return fields(
        rng,
        partitions=many(
            lambda r: (
                {"device": text(r), "layout": boolean(r)}
                | fields(
                    r,
                    overwrite=boolean,
                    tableType=lambda _: "gpt",
                    diskLayout=many(
                        lambda q: (
                            {"percentage": q.randint(1, 100)}
                            | fields(
                                q,
                                partitionType=lambda p: p.choice(
                                    ["Linux", "LinuxSwap", "LinuxRAID", "LVM", "Fat32", "NTFS", "LinuxExtended", "ef"]
                                ),
                            )
                        )
                    ),
                )
            )
        ),
        filesystems=many(
            lambda r: (
                {"device": text(r), "filesystem": "ext4", "label": word(r)}
                | fields(
                    r,
                    partition=text,
                    overwrite=boolean,
                    replaceFS=word,
                    extraOpts=many(lambda q: q.choice(["-F", "-E", "lazy=1"])),
                )
            )
        ),
    )


def arguments(rng: random.Random) -> list[dict[str, Any]]:
    return [
        {"name": rng.choice("abcde"), "value": rng.choice(["", "1", "true", "x=y,z"])} for _ in range(rng.randint(1, 4))
    ]


def environment(rng: random.Random) -> list[dict[str, Any]]:
    reference = {"name": "HOST", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "status.hostIP"}}}
    return rng.choice([[{"name": "A", "value": "b"}, {"name": "EMPTY"}], [reference], [{"name": "N", "value": "1"}]])


def component(rng: random.Random, **more: Draw) -> dict[str, Any]:
    return fields(
        rng,
        extraArgs=arguments,
        extraEnvs=environment,
        extraVolumes=many(
            lambda r: (
                {"name": word(r), "hostPath": "/a", "mountPath": "/b"}
                | fields(r, readOnly=boolean, pathType=lambda _: "DirectoryOrCreate")
            )
        ),
        **more,
    )


_IMAGES = {"imageRepository": lambda _: "registry.example.org/k8s", "imageTag": lambda _: "v1.2.3"}


def etcd(rng: random.Random) -> dict[str, Any]:
    """Local or external, or nothing."""
    if boolean(rng):
        files = {"caFile": "/e/ca.crt", "certFile": "/e/c.crt", "keyFile": "/e/c.key"}
        return {"external": {"endpoints": ["https://192.0.2.1:2379"], **files}}
    local = fields(
        rng,
        **_IMAGES,
        dataDir=path,
        extraArgs=arguments,
        extraEnvs=environment,
        serverCertSANs=many(word),
        peerCertSANs=many(word),
    )
    return {"local": local} if local else {}


def cluster_configuration(rng: random.Random) -> dict[str, Any]:
    return fields(
        rng,
        etcd=etcd,
        controlPlaneEndpoint=lambda _: "other.example.org:6443",
        apiServer=lambda r: component(r, certSANs=many(word)),
        controllerManager=component,
        scheduler=component,
        dns=lambda r: fields(r, **_IMAGES),
        certificatesDir=lambda _: "/srv/pki",
        imageRepository=lambda _: "registry.example.org",
        featureGates=lambda _: {"B": True, "A": False},
        certificateValidityPeriodDays=lambda r: r.choice([1, 365]),
        caCertificateValidityPeriodDays=lambda r: r.choice([1, 3650]),
        encryptionAlgorithm=lambda r: r.choice(["RSA-2048", "ECDSA-P256"]),
    )


def node_registration(rng: random.Random) -> dict[str, Any]:
    made = fields(
        rng,
        name=lambda _: "{{ ds.meta_data.local_hostname }}",
        criSocket=lambda _: "/run/containerd/containerd.sock",
        kubeletExtraArgs=arguments,
        ignorePreflightErrors=many(word),
        imagePullPolicy=lambda _: "IfNotPresent",
        imagePullSerial=boolean,
    )
    taints = rng.choice(
        [None, [], [{"key": "a", "effect": "NoSchedule"}], [{"key": "a", "value": "v", "effect": "NoExecute"}]]
    )
    return made if taints is None else made | {"taints": taints}


def endpoint(rng: random.Random) -> dict[str, Any]:
    return fields(rng, advertiseAddress=lambda _: "192.0.2.5", bindPort=lambda _: 6443)


def timeouts(rng: random.Random) -> dict[str, Any]:
    names = (
        "controlPlaneComponentHealthCheck",
        "kubeletHealthCheck",
        "kubernetesAPICall",
        "etcdAPICall",
        "tlsBootstrap",
        "discovery",
    )
    return fields(rng, **{f"{name}Seconds": seconds for name in names})


def init_configuration(rng: random.Random) -> dict[str, Any]:
    return fields(
        rng,
        bootstrapTokens=many(
            lambda r: (
                {"token": "abcdef.0123456789abcdef"}
                | fields(
                    r,
                    description=word,
                    ttlSeconds=seconds,
                    expires=lambda _: "2026-01-02T03:04:05Z",
                    usages=many(word),
                    groups=many(word),
                )
            )
        ),
        nodeRegistration=node_registration,
        localAPIEndpoint=endpoint,
        skipPhases=many(word),
        patches=lambda _: {"directory": "/etc/patches"},
        timeouts=timeouts,
    )


def discovery(rng: random.Random) -> dict[str, Any]:
    """By token or by file."""
    found: dict[str, Any] = {"file": {"kubeConfigPath": "/etc/discovery.yaml"}}
    if boolean(rng):
        token = {"token": "abcdef.0123456789abcdef", "apiServerEndpoint": "192.0.2.1:6443"}
        token |= fields(rng, caCertHashes=many(lambda _: "sha256:00"), unsafeSkipCAVerification=boolean)
        found = {"bootstrapToken": token}
    return found | fields(rng, tlsBootstrapToken=lambda _: "abcdef.0123456789abcdef")


def join_configuration(rng: random.Random) -> dict[str, Any]:
    return fields(
        rng,
        nodeRegistration=node_registration,
        caCertPath=lambda _: "/srv/pki/ca.crt",
        discovery=discovery,
        skipPhases=many(word),
        patches=lambda _: {"directory": "/etc/patches"},
        timeouts=timeouts,
    )


def join_control_plane(rng: random.Random) -> dict[str, Any]:
    return join_configuration(rng) | {"controlPlane": fields(rng, localAPIEndpoint=endpoint)}
