"""The manifest for Kubernetes: its parts name each other, and its commands and settings are accepted."""

from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped] # it has no types

from ordercast import ConfigError, Settings, join
from ordercast.cli.app import load_command
from ordercast.cli.shared.live_options import contacts_from, members_from
from ordercast.live.transport.addresses import place_of
from ordercast.wire.keys import KEY_VARIABLE, new_key

PLACE = Path(__file__).parent.parent / "examples" / "kubernetes.yaml"


@pytest.fixture(scope="module")
def parts() -> dict[str, Any]:
    return {part["kind"]: part for part in yaml.safe_load_all(PLACE.read_text())}


@pytest.fixture(scope="module")
def container(parts: dict[str, Any]) -> dict[str, Any]:
    [only] = parts["StatefulSet"]["spec"]["template"]["spec"]["containers"]
    assert isinstance(only, dict)
    return only


def options_of(command: list[str]) -> dict[str, Any]:
    """What `ordercast` makes of it; options that it does not have are errors."""
    program, name, *arguments = command
    assert program == "ordercast"
    context = load_command(name).make_context(name, [each.replace("$(POD_NAME)", "orders-1") for each in arguments])
    return dict(context.params)


def test_every_part_is_there_and_is_about_the_same_pods(parts: dict[str, Any]) -> None:
    assert set(parts) == {"Service", "ConfigMap", "PodDisruptionBudget", "StatefulSet"}
    pods = parts["StatefulSet"]["spec"]["template"]["metadata"]["labels"]
    assert parts["Service"]["spec"]["selector"] == pods
    assert parts["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"] == pods
    assert parts["StatefulSet"]["spec"]["selector"]["matchLabels"] == pods


def test_each_pod_is_a_member_with_a_name_that_it_gets_before_it_is_ready(
    parts: dict[str, Any], container: dict[str, Any]
) -> None:
    service, pods = parts["Service"], parts["StatefulSet"]
    assert service["spec"]["clusterIP"] == "None"
    assert service["spec"]["publishNotReadyAddresses"] is True
    assert pods["spec"]["serviceName"] == service["metadata"]["name"]
    assert pods["spec"]["podManagementPolicy"] == "Parallel", "one alone does not open the group, and is not ready"
    options = options_of(container["command"])
    names = [f"{pods['metadata']['name']}-{place}" for place in range(pods["spec"]["replicas"])]
    members = members_from(options["member_list"])
    assert members == {name: f"{name}.{service['metadata']['name']}:7000" for name in names}
    assert all(place_of(address).is_name for address in members.values())


def test_ports_are_those_of_members_and_of_their_state(parts: dict[str, Any], container: dict[str, Any]) -> None:
    options = options_of(container["command"])
    port = int(options["bind"].rpartition(":")[2])
    expected = {("UDP", port), ("TCP", port)}
    assert {(each["protocol"], each["port"]) for each in parts["Service"]["spec"]["ports"]} == expected
    metrics = int(options["metrics"].rpartition(":")[2])
    assert {(each["protocol"], each["containerPort"]) for each in container["ports"]} == {*expected, ("TCP", metrics)}
    probe = options_of(container["readinessProbe"]["exec"]["command"])
    assert contacts_from(probe["contacts"]) == [f"127.0.0.1:{port}"]
    assert probe["group"] == options["group"]
    assert probe["timeout"] < container["readinessProbe"]["timeoutSeconds"]


def test_settings_and_key_are_taken_and_a_majority_stays(
    parts: dict[str, Any], container: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = options_of(container["command"])
    folder, _, file = str(options["settings"]).rpartition("/")
    [mount] = container["volumeMounts"]
    [volume] = parts["StatefulSet"]["spec"]["template"]["spec"]["volumes"]
    assert (mount["mountPath"], mount["name"]) == (folder, volume["name"])
    assert volume["configMap"]["name"] == parts["ConfigMap"]["metadata"]["name"]
    (tmp_path / file).write_text(parts["ConfigMap"]["data"][file])
    settings = Settings.from_toml(tmp_path / file)
    pods = parts["StatefulSet"]["spec"]["replicas"]
    assert parts["PodDisruptionBudget"]["spec"]["maxUnavailable"] * 2 < pods
    arguments: dict[str, Any] = {
        "members": members_from(options["member_list"]),
        "name": options["name"],
        "bind": options["bind"],
        "settings": settings,
    }
    environment = {each["name"]: each["valueFrom"] for each in container["env"]}
    assert environment["POD_NAME"]["fieldRef"]["fieldPath"] == "metadata.name"
    assert "secretKeyRef" in environment[KEY_VARIABLE]
    with pytest.raises(ConfigError, match="need a key"):
        join(options["group"], **arguments)
    monkeypatch.setenv(KEY_VARIABLE, new_key())
    join(options["group"], **arguments)
