"""The JobSet of GKE: valid by its schema, whole arguments, and what each exit code does; xpk's command."""

import json
import pathlib
import re
import shlex

import pytest

from tests.launch import shell

jsonschema = pytest.importorskip("jsonschema")
yaml = pytest.importorskip("yaml")

SCHEMA = json.loads((pathlib.Path(__file__).parent / "jobset_schema.json").read_text())
BASIC = ("--image", "europe-docker.pkg.dev/p/r/t2t:1", "--claim", "runs")


@pytest.fixture
def fakes(tmp_path) -> shell.Fakes:
    return shell.Fakes(tmp_path, "kubectl", "xpk")


def submit(fakes, *arguments: str) -> dict:
    """The JobSet that was submitted; it is valid."""
    done = shell.run("gke/gke.sh", *BASIC, *arguments, fakes=fakes)
    assert done.returncode == 0, done.stderr
    ((name, given, manifest),) = fakes.calls()
    assert (name, given) == ("kubectl", ["apply", "-f", "-"])
    assert not re.search("@[A-Z]+@", manifest.replace('"@HOSTS@"', ""))  # a word of the arguments below
    made = yaml.safe_load(manifest)
    jsonschema.validate(made, SCHEMA)
    return made


def pod(made: dict) -> dict:
    return made["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]


def test_one_slice(fakes):
    made = submit(fakes, "quickstart")
    (job,) = made["spec"]["replicatedJobs"]
    assert (made["metadata"]["name"], job["replicas"]) == ("t2t", 1)
    assert job["template"]["spec"]["parallelism"] == job["template"]["spec"]["completions"] == 4
    (container,) = pod(made)["containers"]
    assert container["args"] == ["train", "quickstart", "--distributed", "auto"]
    assert container["resources"]["limits"] == {"google.com/tpu": 4}
    assert "cloud.google.com/gke-spot" not in pod(made)["nodeSelector"]
    assert pod(made)["volumes"][0]["persistentVolumeClaim"]["claimName"] == "runs"


def test_several_slices_of_spot_nodes(fakes):
    shape = ("--accelerator", "tpu-v6e-slice", "--topology", "4x8", "--hosts", "8", "--slices", "3", "--spot")
    made = submit(fakes, "--name", "big", "--restarts", "4", *shape, "pretrain/t5_small")
    (job,) = made["spec"]["replicatedJobs"]
    assert (made["metadata"]["name"], job["replicas"], job["template"]["spec"]["parallelism"]) == ("big", 3, 8)
    assert made["spec"]["failurePolicy"]["maxRestarts"] == 4
    assert pod(made)["nodeSelector"] == {
        "cloud.google.com/gke-tpu-accelerator": "tpu-v6e-slice",
        "cloud.google.com/gke-tpu-topology": "4x8",
        "cloud.google.com/gke-spot": "true",
    }
    assert {toleration["key"] for toleration in pod(made)["tolerations"]} == {
        "google.com/tpu",
        "cloud.google.com/gke-spot",
    }


def test_arguments_arrive_as_they_are(fakes):
    words = ["--name", 'a "b" & \\c', "--data.files", "x/*.txt", "it's", "@HOSTS@"]
    made = submit(fakes, "quickstart", *words)
    assert pod(made)["containers"][0]["args"] == ["train", "quickstart", *words, "--distributed", "auto"]


def outcome(made: dict, *, code: int | None = None, condition: str | None = None) -> str:
    """What JobSet does when a pod ends so: the rules of its job, then those of the set, each the first that fits."""
    job = made["spec"]["replicatedJobs"][0]["template"]["spec"]
    reason, message = "BackoffLimitExceeded", "Job has reached the specified backoff limit"
    for number, rule in enumerate(job["podFailurePolicy"]["rules"]):
        is_code = code in rule.get("onExitCodes", {}).get("values", ())
        is_condition = condition in [one["type"] for one in rule.get("onPodConditions", ())]
        if is_code or is_condition:
            what = f"failed with exit code {code}" if is_code else f"has condition {condition}"
            reason = "PodFailurePolicy"
            message = f"Container t2t for pod default/x {what} matching {rule['action']} rule at index {number}"
            break
    for rule in made["spec"]["failurePolicy"]["rules"]:
        patterns = rule.get("onJobFailureMessagePatterns", [""])
        if reason in rule["onJobFailureReasons"] and any(re.search(pattern, message) for pattern in patterns):
            return rule["action"]
    return "RestartJobSet"


def test_exit_codes_decide_what_becomes_of_the_run(fakes):
    made = submit(fakes, "quickstart")
    assert outcome(made, code=2) == "FailJobSet"
    for code in (130, 143):
        assert outcome(made, code=code) == "RestartJobSetAndIgnoreMaxRestarts"
    assert outcome(made, condition="DisruptionTarget") == "RestartJobSetAndIgnoreMaxRestarts"
    for code in (1, 137, 139):
        assert outcome(made, code=code) == "RestartJobSet"  # which counts towards maxRestarts


def test_dry_run_shows_what_would_be_submitted(fakes):
    done = shell.run("gke/gke.sh", *BASIC, "--dry-run", "quickstart", fakes=fakes)
    assert done.returncode == 0 and fakes.calls() == []
    assert done.stdout.splitlines()[-1] == "+ kubectl apply -f -"
    jsonschema.validate(yaml.safe_load(done.stdout.partition("# submitted")[0]), SCHEMA)


def test_the_schema_refuses_misspelt_fields(fakes):
    made = submit(fakes, "quickstart")
    made["spec"]["failurePolicy"]["maxRestart"] = 3
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(made, SCHEMA)


def test_xpk(fakes):
    options = ("--image", "i", "--xpk", "ours", "--type", "v5litepod-16", "--slices", "2", "--name", "big")
    done = shell.run("gke/gke.sh", *options, "quickstart", "--name", "a b", fakes=fakes)
    assert done.returncode == 0, done.stderr
    ((name, given, _),) = fakes.calls()
    assert name == "xpk" and given[:2] == ["workload", "create"]
    named = dict(zip(given[2::2], given[3::2], strict=True))
    command = shlex.split(named.pop("--command"))
    assert command == [
        *("bash", "launch/restart.sh", "--restarts", "10", "t2t", "train", "quickstart"),
        *("--name", "a b", "--distributed", "auto"),
    ]
    assert named == {
        "--cluster": "ours",
        "--workload": "big",
        "--tpu-type": "v5litepod-16",
        "--num-slices": "2",
        "--docker-image": "i",
        "--max-restarts": "1000",
        "--termination-grace-period-seconds": "300",
    }
