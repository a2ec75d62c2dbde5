"""A Ray cluster of two node processes gives the document of one process, byte for byte.

The nodes run on this machine, on ports of their own, and are started and stopped here.
"""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import polars as pl
import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("ray", reason="Ray is not installed: pip install 'calibrant[ray]'")

BIN = Path(sys.executable).parent
FILES = 40
ROWS = 100_000


def free_port():
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return held.getsockname()[1]


class Cluster:
    """Two `ray start --block` processes, each in a session of its own."""

    def __init__(self, folder):
        self.folder = folder
        self.address = f"127.0.0.1:{free_port()}"
        self.client = free_port()
        self.environment = {
            **os.environ,
            "RAY_ADDRESS": self.address,
            "RAY_USAGE_STATS_ENABLED": "0",
        }
        self.nodes = []

    def start(self, ports, *options):
        command = [
            BIN / "ray", "start", "--block", "--node-ip-address=127.0.0.1", "--num-cpus=1",
            "--disable-usage-stats", "--object-store-memory=150000000",
            f"--min-worker-port={ports}", f"--max-worker-port={ports + 60}", *options,
        ]  # fmt: skip
        with (self.folder / f"node-{len(self.nodes)}.log").open("w") as log:
            self.nodes.append(
                subprocess.Popen(
                    command,
                    stdout=log,
                    stderr=log,
                    stdin=subprocess.DEVNULL,
                    env={name: v for name, v in self.environment.items() if name != "RAY_ADDRESS"},
                    start_new_session=True,
                )
            )

    def processes(self, node):
        """Return (pid, command line) of every process of a node's session."""
        listed = subprocess.run(
            ["ps", "-ww", "-eo", "pid,sid,args"], capture_output=True, text=True, check=True
        ).stdout
        rows = [line.split(None, 2) for line in listed.splitlines()[1:]]
        return [(int(pid), args) for pid, sid, args in rows if sid == str(node.pid)]

    def raylet(self, node):
        return next(pid for pid, args in self.processes(node) if "/raylet/raylet" in args)

    def wait_until_up(self):
        code = f"""
import ray, sys, time
for _ in range(60):
    try:
        ray.init(address={self.address!r}, logging_level='ERROR', log_to_driver=False)
        break
    except Exception:
        time.sleep(0.5)
for _ in range(60):
    if sum(node['Alive'] for node in ray.nodes()) == 2:
        sys.exit(0)
    time.sleep(0.5)
sys.exit(1)
"""
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=300)
        return done.returncode == 0

    def stop(self):
        for sign in (signal.SIGTERM, signal.SIGKILL):
            for node in self.nodes:
                for pid, _ in self.processes(node):
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, sign)
            deadline = time.monotonic() + 1
            while any(map(self.processes, self.nodes)) and time.monotonic() < deadline:
                for node in self.nodes:
                    node.poll()
                time.sleep(0.05)
        for node in self.nodes:
            node.wait(10)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ray")
    # Ray's sockets lie in its folder, and their paths must stay short.
    short = Path("/tmp") / f"calibrant-ray-{os.getpid()}"
    made = Cluster(folder)
    first = 20_000 + os.getpid() % 8_000
    made.start(
        first, "--head", f"--port={made.address.split(':')[1]}", "--include-dashboard=false",
        f"--ray-client-server-port={made.client}", f"--temp-dir={short}",
    )  # fmt: skip
    try:
        deadline = time.monotonic() + 300
        while "Ray runtime started" not in (folder / "node-0.log").read_text():
            assert time.monotonic() < deadline, "the head node did not start"
            time.sleep(0.2)
        made.start(first + 100, f"--address={made.address}")
        if not made.wait_until_up():
            logs = "\n".join(log.read_text()[-2000:] for log in sorted(folder.glob("node-*.log")))
            pytest.fail(f"the two Ray nodes did not come up:\n{logs}")
        yield made
    finally:
        made.stop()
        subprocess.run(["rm", "-rf", str(short)], check=False)


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    folder = tmp_path_factory.mktemp("table")
    rng = np.random.default_rng(0)
    for number in range(FILES):
        confidence = rng.random(ROWS)
        pl.DataFrame(
            {
                "confidence": confidence,
                "correct": rng.random(ROWS) < confidence**1.2,
                "model": rng.choice(["small", "large"], ROWS),
            }
        ).write_parquet(folder / f"part-{number:02}.parquet")
    return folder


def audit(table, engine, out, environment):
    command = [BIN / "calibrant", "audit", table, "--engine", engine, "--json", out]
    return subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def document(table, engine, out, environment):
    run = audit(table, engine, out, environment)
    _, errors = run.communicate(timeout=600)
    assert run.returncode == 0, errors
    return out.read_bytes()


@pytest.fixture(scope="module")
def local(cluster, table, tmp_path_factory):
    """The document of one process."""
    return document(table, "local", tmp_path_factory.mktemp("out") / "local", cluster.environment)


def test_two_nodes_give_the_bytes_of_one_process_and_a_lost_node_changes_nothing(
    cluster, table, local, tmp_path
):
    assert document(table, "ray", tmp_path / "ray.json", cluster.environment) == local

    second = cluster.nodes[1]
    run = audit(table, "ray", "-", cluster.environment)
    # As soon as the second node works on a part, it is killed without a warning.
    deadline = time.monotonic() + 300
    busy = None
    while busy is None and run.poll() is None and time.monotonic() < deadline:
        busy = next((pid for pid, args in cluster.processes(second) if "_applied" in args), None)
        time.sleep(0.02)
    assert busy is not None, "the second node never worked on a part"
    os.kill(cluster.raylet(second), signal.SIGKILL)
    os.kill(busy, signal.SIGKILL)
    assert run.poll() is None, "the audit was over before the node was killed"
    killed, errors = run.communicate(timeout=600)
    assert run.returncode == 0, errors
    assert killed.encode() == local


def test_the_client_address_gives_the_same_bytes(cluster, table, local, tmp_path):
    # Ray's proxy takes a port between 23000 and 24000, which another cluster may hold: once more.
    for _ in range(2):
        engine = f"ray://127.0.0.1:{cluster.client}"
        client = audit(table, engine, tmp_path / "client.json", cluster.environment)
        _, errors = client.communicate(timeout=600)
        if client.returncode == 0:
            break
    assert client.returncode == 0, errors
    assert (tmp_path / "client.json").read_bytes() == local


def test_without_a_cluster_the_message_says_what_to_start(table, tmp_path):
    environment = {**os.environ, "RAY_ADDRESS": f"127.0.0.1:{free_port()}"}
    run = audit(table, "ray", tmp_path / "none.json", environment)
    _, errors = run.communicate(timeout=600)
    assert run.returncode == 2
    assert "ray start" in errors
    assert "Traceback" not in errors


OTHER_VERBS = """
import importlib
import sys
import calibrant as cal
from calibrant.data.sources.engines import engine_named
from calibrant.answers.semantics.annotate import annotate
from calibrant.core.document import dump_document
from calibrant.answers.semantics import SemanticsOptions, annotate
from scale.test_shared_out import draws, questions, scores

rules = SemanticsOptions(clustering="rules", grading="rules")
alone = annotate(draws(), questions(), options=rules)
shared = annotate(draws(), questions(), options=rules, mapper=engine_named("ray").map)
assert shared.semantics.equals(alone.semantics) and shared.draws.equals(alone.draws)
assert dump_document(shared.document) == dump_document(alone.document)

table = alone.semantics.filter(alone.semantics["class_id"].is_not_null())
table.select("question_id", "model", "class_id", "correct").write_parquet(sys.argv[1])
options = dict(models=["small", "large"], features=["x"], price={"small": 1.0, "large": 5.0})
verbs = {
    "Sem-ECE": lambda engine: cal.audit(sys.argv[1], resamples=50, engine=engine),
    "cascade": lambda engine: cal.cascade(scores(), random_splits=3, engine=engine, **options),
    "compare": lambda engine: cal.compare(scores(), by=["topic"], resamples=50, engine=engine),
}
for name, verb in verbs.items():
    found = {engine: dump_document(verb(engine).to_dict()) for engine in (None, "local", "ray")}
    assert found[None] == found["local"] == found["ray"], name

importlib.import_module("calibrant.verbs.compare").STREAM_ROWS = 10
importlib.import_module("calibrant.comparison.parts").PART_ROWS = 100
scores().write_parquet(sys.argv[2])
parts = {
    engine: cal.compare(sys.argv[2], by=["topic"], resamples=50, engine=engine).to_dict()
    for engine in ("local", "ray")
}
assert parts["local"]["reading"]["parts"] == 6
assert dump_document(parts["local"]) == dump_document(parts["ray"])
print("all the same")
"""


def test_other_verbs_give_the_documents_of_one_process(cluster, tmp_path):
    # The nodes have calibrant, not the tests: the tables are made here and sent.
    tests = str(Path(__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-c", OTHER_VERBS, tmp_path / "draws.parquet", tmp_path / "t.parquet"],
        env={**cluster.environment, "PYTHONPATH": tests},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    # Ray itself may print about the node that an earlier test killed, before or after.
    assert "all the same" in done.stdout.splitlines(), done.stderr[-2000:]
