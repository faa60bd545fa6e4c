"""What stands in deploy/ is sound: it parses, runs as nobody on a read-only root, limited and watched."""

from __future__ import annotations

import configparser
import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from planner.pricing.schedules import unit_files

DEPLOY = Path(__file__).resolve().parents[1] / "deploy"
_PROJECT = tomllib.loads((DEPLOY.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]
IMAGE = f"training-planner:{_PROJECT['version']}"
UNITS = sorted((DEPLOY / "systemd").iterdir())


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))
    return found


@pytest.fixture(scope="module")
def manifests() -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((DEPLOY / "kubernetes" / "planner.yaml").read_text(encoding="utf-8")))


def pods(manifests: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Kind -> its pod, labels and spec."""
    found = {}
    for each in manifests:
        if each["kind"] == "Deployment":
            found["Deployment"] = each["spec"]["template"]
        if each["kind"] == "CronJob":
            found["CronJob"] = each["spec"]["jobTemplate"]["spec"]["template"]
    return found


def instructions(name: str = "Containerfile") -> list[tuple[str, str]]:
    """Instruction and argument of each line, continued lines joined, comments dropped."""
    text = (DEPLOY / name).read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    joined = re.sub(r"\\\n\s*", " ", "\n".join(lines))
    return [(line.split(None, 1)[0], line.split(None, 1)[1]) for line in joined.splitlines()]


def test_the_image_starts_from_pinned_tags_and_ends_as_nobody() -> None:
    found = instructions()
    bases = [argument.split()[0] for instruction, argument in found if instruction == "FROM"]
    assert all(re.fullmatch(r"python:3\.\d+\.\d+-slim-\w+", base) for base in bases)
    assert len(set(bases)) == 1
    users = [argument for instruction, argument in found if instruction == "USER"]
    assert users[-1] == "10001:10001"
    after = found[found.index(("USER", "10001:10001")) :]
    assert not [argument for instruction, argument in after if instruction in ("RUN", "ADD", "COPY")]


def test_the_image_installs_exact_versions_and_copies_no_more_than_the_wheel_needs() -> None:
    found = instructions()
    installs = [
        argument for instruction, argument in found if instruction == "RUN" and "pip install" in argument
    ]
    assert installs
    assert all("-c constraints.txt" in argument for argument in installs)
    copied = {argument.split()[0] for instruction, argument in found if instruction == "COPY"}
    assert "." not in copied
    for name in ("planner", "models", "pricing", "pyproject.toml"):
        assert name in copied
        assert (DEPLOY.parent / name).exists()


def test_the_image_has_a_health_check_and_stops_by_sigterm() -> None:
    found = dict(instructions())
    assert "/healthz" in found["HEALTHCHECK"]
    assert found["STOPSIGNAL"] == "SIGTERM"


def test_no_registry_host_and_no_floating_tag_is_named(compose: Any, manifests: Any) -> None:
    images = [service["image"] for service in compose["services"].values()]
    images += [pod["spec"]["containers"][0]["image"] for pod in pods(manifests).values()]
    for image in images:
        assert "/" not in image
        assert re.search(r":\d+\.\d+", image), image
    assert set(images) == {IMAGE, "postgres:17.6-bookworm"}


def test_compose_services_are_confined(compose: dict[str, Any]) -> None:
    for name, service in compose["services"].items():
        assert service["read_only"] is True, name
        assert service["cap_drop"] == ["ALL"], name
        assert not service["user"].startswith("0"), name
        assert "no-new-privileges:true" in service["security_opt"], name
        assert service["deploy"]["resources"]["limits"].keys() == {"cpus", "memory"}, name
        assert "privileged" not in service, name


def test_compose_publishes_to_loopback_alone_and_hides_the_database(compose: dict[str, Any]) -> None:
    published = [port for service in compose["services"].values() for port in service.get("ports", ())]
    assert published == ["127.0.0.1:8080:8080"]
    assert compose["services"]["db"]["networks"] == ["inside"]
    assert compose["networks"]["inside"]["internal"] is True
    for service in ("planner", "db"):
        assert compose["services"][service]["healthcheck"]["test"][0] == "CMD"


def test_no_file_holds_a_password() -> None:
    for file in DEPLOY.rglob("*"):
        if file.is_file():
            text = "\n".join(
                line
                for line in file.read_text(encoding="utf-8").splitlines()
                if not line.lstrip().startswith("#")
            )
            for match in re.findall(r"postgresql://[^\s\"']*", text):
                assert "${POSTGRES_PASSWORD" in match, (file, match)
            assert not re.search(r"(?i)(password|secret|token)\s*[:=]\s*[\w]{6,}\s*$", text, re.M), file


@pytest.mark.parametrize("kind", ["Deployment", "CronJob"])
def test_pods_run_as_nobody_on_a_read_only_root_within_limits(manifests: Any, kind: str) -> None:
    spec = pods(manifests)[kind]["spec"]
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["securityContext"]["runAsUser"] == 10001
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert spec["automountServiceAccountToken"] is False
    (container,) = spec["containers"]
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert {"cpu", "memory"} <= container["resources"]["requests"].keys()
    assert "memory" in container["resources"]["limits"]
    mounted = {mount["name"] for mount in container["volumeMounts"]}
    assert mounted == {volume["name"] for volume in spec["volumes"]}
    (store,) = container["env"]
    assert "secretKeyRef" in store["valueFrom"]


def test_the_deployment_is_probed_where_the_service_answers(manifests: list[dict[str, Any]]) -> None:
    (container,) = pods(manifests)["Deployment"]["spec"]["containers"]
    paths = {probe: container[probe]["httpGet"]["path"] for probe in
             ("startupProbe", "livenessProbe", "readinessProbe")}  # fmt: skip
    assert paths == {"startupProbe": "/healthz", "livenessProbe": "/healthz", "readinessProbe": "/readyz"}
    assert pods(manifests)["Deployment"]["spec"]["terminationGracePeriodSeconds"] >= 20


def test_selectors_find_the_pods_they_mean(manifests: list[dict[str, Any]]) -> None:
    labels = {kind: pod["metadata"]["labels"] for kind, pod in pods(manifests).items()}
    for each in manifests:
        if each["kind"] in ("Service", "PodDisruptionBudget", "Deployment"):
            selector = each["spec"]["selector"]
            wanted = selector.get("matchLabels", selector)
            assert wanted.items() <= labels["Deployment"].items(), each["kind"]
            assert not wanted.items() <= labels["CronJob"].items(), each["kind"]
    policies = [each for each in manifests if each["kind"] == "NetworkPolicy"]
    assert policies[0]["spec"]["podSelector"]["matchLabels"].items() <= labels["CronJob"].items()
    assert policies[0]["spec"]["policyTypes"] == ["Ingress", "Egress"]


def test_only_the_refresh_may_reach_out_and_never_inside(manifests: list[dict[str, Any]]) -> None:
    outside = [
        (each, block["ipBlock"])
        for each in manifests
        if each["kind"] == "NetworkPolicy"
        for rule in each["spec"].get("egress", ())
        for block in rule.get("to", ())
        if "ipBlock" in block
    ]
    ((policy, block),) = outside
    assert policy["spec"]["podSelector"]["matchLabels"]["app.kubernetes.io/component"] == "refresh"
    assert {"169.254.0.0/16", "10.0.0.0/8", "192.168.0.0/16", "172.16.0.0/12"} <= set(block["except"])


def test_the_cron_job_is_the_one_that_the_planner_prints(manifests: list[dict[str, Any]]) -> None:
    """One refresh, written down twice: what decides when and how it runs is the same (C42)."""
    printed = yaml.safe_load(unit_files("kubernetes", program=IMAGE))
    (ours,) = [each for each in manifests if each["kind"] == "CronJob"]
    for key in ("schedule", "timeZone", "concurrencyPolicy", "startingDeadlineSeconds"):
        assert ours["spec"][key] == printed["spec"][key]
    for key in ("backoffLimit", "activeDeadlineSeconds", "podFailurePolicy"):
        assert ours["spec"]["jobTemplate"]["spec"][key] == printed["spec"]["jobTemplate"]["spec"][key]
    (container,) = pods(manifests)["CronJob"]["spec"]["containers"]
    (theirs,) = printed["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"]
    assert (container["image"], container["args"]) == (theirs["image"], theirs["args"])


@pytest.mark.parametrize("unit", [u for u in UNITS if u.suffix == ".service"], ids=lambda unit: unit.name)
def test_units_are_hardened(unit: Path) -> None:
    found = configparser.ConfigParser(strict=False, interpolation=None)
    found.optionxform = str  # type: ignore[assignment,method-assign]
    found.read_string(unit.read_text(encoding="utf-8"))
    service = found["Service"]
    assert service["DynamicUser"] == "yes"
    assert service["ProtectSystem"] == "strict"
    assert service["CapabilityBoundingSet"] == ""
    for key in ("NoNewPrivileges", "ProtectHome", "PrivateTmp", "PrivateDevices", "RestrictNamespaces"):
        assert service[key] == "yes", key
    assert "MemoryMax" in service


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
def test_systemd_accepts_the_units(tmp_path: Path) -> None:
    for unit in UNITS:
        text = unit.read_text(encoding="utf-8").replace(
            "/opt/planner/bin/planner", shutil.which("true") or ""
        )
        (tmp_path / unit.name).write_text(text, encoding="utf-8")
    files = [str(tmp_path / unit.name) for unit in UNITS]
    verified = subprocess.run(
        ["systemd-analyze", "verify", *files], capture_output=True, text=True, check=False
    )
    assert (verified.returncode, verified.stderr) == (0, "")
    for file in files:
        if file.endswith(".service"):
            judged = subprocess.run(
                ["systemd-analyze", "security", "--offline=true", "--no-pager", "--threshold=20", file],
                capture_output=True,
                text=True,
                check=False,
            )
            assert judged.returncode == 0, judged.stdout[-300:]


def test_the_units_and_the_printed_ones_say_the_same() -> None:
    printed = unit_files("systemd", program="/opt/planner/bin/planner")
    ours = (DEPLOY / "systemd" / "planner-prices.service").read_text(encoding="utf-8")
    timer = (DEPLOY / "systemd" / "planner-prices.timer").read_text(encoding="utf-8")
    for line in ("ExecStart=/opt/planner/bin/planner prices refresh --quiet", "SuccessExitStatus=6"):
        assert line in printed
        assert line in ours
    for line in ("OnCalendar=*-*-* 04:17:00 UTC", "Persistent=true", "RandomizedDelaySec=10min"):
        assert line in printed
        assert line in timer
