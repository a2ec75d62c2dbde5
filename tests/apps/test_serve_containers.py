"""The examples of containers, run as far as a machine without an engine allows: in namespaces.

The server has a network and users of its own, the file system is read-only but for one volume, and
a probe asks it by the address of its pod, as a kubelet does.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from contextlib import suppress
from pathlib import Path

import pytest
import yaml

from calibrant.models.study.prompts import study_recipe
from calibrant.trust.policy import RawScore, SelectivePolicy
from clients.server import Endpoint
from collect.studies import write_study

EXAMPLES = Path(__file__).parents[2] / "examples" / "serve"
POD = "10.42.0.17"
PROMISE = {"max_error": 0.1, "delta": 0.1, "certified": True}
# `model` is a name in this pod's network, as a service gives it; volume and /tmp can be written.
SETUP = f"""
ip link set lo up && ip addr add {POD}/32 dev lo
printf '127.0.0.1 localhost\\n{POD} model\\n' > "$1/hosts" && mount --bind "$1/hosts" /etc/hosts
for place in data tmp; do mount --bind "$1/$place" "$1/$place"; done
mount -o remount,ro,bind / && shift && exec "$@"
"""


def namespaces(*command):
    return subprocess.run(
        ["unshare", "-rnm", "sh", "-ec", SETUP, "sh", *map(str, command)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip


def can_unshare():
    with suppress(OSError), tempfile.TemporaryDirectory() as name:
        for folder in ("data", "tmp"):
            (Path(name) / folder).mkdir()
        return sys.platform == "linux" and namespaces(name, "true").returncode == 0
    return False


def example(kind):
    """Return arguments, environment and folder of a server as an example starts it."""
    image = (EXAMPLES / "Containerfile").read_text()
    (entry,) = re.findall(r"^ENTRYPOINT (.+)$", image, re.MULTILINE)
    (folder,) = re.findall(r"^WORKDIR (.+)$", image, re.MULTILINE)
    documents = list(yaml.safe_load_all((EXAMPLES / f"{kind}.yaml").read_text()))
    if kind == "compose":
        service = documents[0]["services"]["calibrant"]
        assert (service["read_only"], service["tmpfs"]) == (True, ["/tmp"])
        arguments, given = service["command"], service["environment"]
    else:
        pod = documents[0]["spec"]["template"]["spec"]["containers"][0]
        assert pod["securityContext"]["readOnlyRootFilesystem"]
        assert "/tmp" in {mount["mountPath"] for mount in pod["volumeMounts"]}
        arguments, folder = pod["args"], pod["workingDir"]
        given = {entry["name"]: entry.get("value", "of-a-secret") for entry in pod["env"]}
    given["CALIBRANT_TOKEN"] = "a-token"
    return [*json.loads(entry), *arguments], given, folder


@pytest.mark.skipif(not can_unshare(), reason="no namespaces of its own can be made here")
@pytest.mark.parametrize("kind", ["compose", "kubernetes"])
def test_the_examples_serve_where_only_the_volume_can_be_written(tmp_path, kind):
    study = write_study(tmp_path / "study", "http://127.0.0.1:9/v1")
    asked = json.loads(
        json.dumps(study_recipe(study, "consistency", ("samples",))).replace("oracle", "small")
    )
    fitted = {"model": "small", "method": "consistency", "asked": asked}
    policy = SelectivePolicy(RawScore(), 0.0, PROMISE, "2026-11-17", 9, fitted)
    for name in ("data", "policy", "tmp"):
        (tmp_path / name).mkdir()
    policy.save(tmp_path / {"compose": "data", "kubernetes": "policy"}[kind] / "policy.json")
    (tmp_path / "data" / "labels.csv").write_text("question_id,answer,correct\n")
    done = namespaces(tmp_path, sys.executable, __file__, tmp_path, kind)
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["written elsewhere"] is False
    assert found["/health"] == found["/ready"] == found["asked"] == 200
    assert found["strange host"] == 403
    assert found["calls"] == 1
    assert found["end"] == 0
    assert len((tmp_path / "data" / "served.jsonl").read_text().splitlines()) == 1


# -- inside ----------------------------------------------------------------------------------------


def status(path, body=None, **headers):
    request = urllib.request.Request(f"http://{POD}:8080{path}", body, headers)
    try:
        with urllib.request.urlopen(request, timeout=30) as reply:
            return reply.status
    except urllib.error.HTTPError as error:
        return error.code
    except OSError:
        return None


def inside(root, kind):
    """Start what an example starts, ask it as probes and callers do, and end it."""
    (_, *arguments), given, folder = example(kind)
    arguments = [argument.replace("/data", f"{root}/data") for argument in arguments]
    user = ["unshare", "-U", "--map-user=1000", "--map-group=1000"]
    kubelet = {"Host": f"{POD}:8080", "User-Agent": "kube-probe/1.32", "Connection": "close"}
    caller = {"Authorization": "Bearer a-token", "Content-Type": "application/json"}
    body = json.dumps({"messages": [{"role": "user", "content": "What is 7?"}]}).encode()
    model = Endpoint()
    model.place = (POD, 8001)
    with model:
        program = subprocess.Popen(
            [*user, sys.executable, "-m", "calibrant", *arguments], cwd=f"{root}{folder}",
            env={**os.environ, **given, "HOME": "/home/calibrant", "TMPDIR": f"{root}/tmp"},
        )  # fmt: skip
        end = time.monotonic() + 60
        while status("/health", **kubelet) is None and time.monotonic() < end:
            assert program.poll() is None
            time.sleep(0.1)
        found = {path: status(path, **kubelet) for path in ("/health", "/ready")}
        found["asked"] = status("/v1/chat/completions", body, Host="calibrant", **caller)
        found["strange host"] = status("/v1/chat/completions", body, Host="other", **caller)
        found["calls"] = len(model.calls)
        with suppress(OSError):
            found["written elsewhere"] = False
            Path(__file__).with_name("written").write_text("x")
            found["written elsewhere"] = True
        program.terminate()
        found["end"] = program.wait(60)
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    inside(Path(sys.argv[1]), sys.argv[2])
