"""The files of deploy/kubernetes against the schemas of what reads them: those of Kubeflow Trainer and of pods as its own
package has them, MPIJob (v2beta1) by the fields of its definition. usage: clusters.py"""
import pathlib
import sys

import yaml
from kubeflow_trainer_api import models

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "deploy" / "kubernetes"
checks = 0


def check(is_so, what):
    global checks
    checks += 1
    if not is_so:
        sys.exit(f"clusters: {what}")


def same(model, value, where):
    """The model takes the value, and nothing in it is unknown: what it writes is what it read."""
    read = model.from_dict(value)
    check(read is not None, f"{where}: empty")
    compare(value, read.to_dict(), where)


def compare(value, written, where):
    if isinstance(value, dict):
        check(isinstance(written, dict), f"{where}: {written!r} came back for an object")
        for key, part in value.items():
            check(key in written, f"{where}.{key}: unknown")
            compare(part, written[key], f"{where}.{key}")
    elif isinstance(value, list):
        check(isinstance(written, list) and len(value) == len(written), f"{where}: not the same list")
        for i, part in enumerate(value):
            compare(part, written[i], f"{where}[{i}]")
    else:
        check(value == written, f"{where}: {value!r} came back as {written!r}")


# Source: crd/kubeflow.org_mpijobs.yaml of kubeflow/mpi-operator.
MPIJOB = {
    "slotsPerWorker": int,
    "runLauncherAsWorker": bool,
    "sshAuthMountPath": str,
    "launcherCreationPolicy": ["AtStartup", "WaitForWorkersReady"],
    "mpiImplementation": ["OpenMPI", "Intel", "MPICH"],
    "runPolicy": {
        "cleanPodPolicy": ["None", "Running", "All"],
        "ttlSecondsAfterFinished": int,
        "activeDeadlineSeconds": int,
        "backoffLimit": int,
        "suspend": bool,
    },
    "mpiReplicaSpecs": {
        kind: {"replicas": int, "restartPolicy": ["Always", "OnFailure", "Never"],
               "template": models.IoK8sApiCoreV1PodTemplateSpec}
        for kind in ("Launcher", "Worker")
    },
}


def fits(kind, value, where):
    if isinstance(kind, dict):
        check(isinstance(value, dict), f"{where}: an object is needed")
        for key, part in value.items():
            check(key in kind, f"{where}.{key}: unknown")
            fits(kind[key], part, f"{where}.{key}")
    elif isinstance(kind, list):
        check(value in kind, f"{where}: {value!r} is none of {kind}")
    elif kind in (int, bool, str):
        check(type(value) is kind, f"{where}: {value!r} is no {kind.__name__}")
    else:
        same(kind, value, where)


def check_time_to_save(arguments, pods, where):
    """Ranks are told before sshd ends, mpirun waits for them once it is told to end, and the pods for mpirun."""
    at = arguments.index("odls_base_sigkill_timeout")
    check(arguments[at - 1] == "--mca", f"{where}: no --mca before odls_base_sigkill_timeout")
    for pod in pods:
        check(pod.get("terminationGracePeriodSeconds", 30) > int(arguments[at + 1]), f"{where}: no time to save")
    worker = pods[-1]["containers"][0]
    check("pidof heddle" in worker["lifecycle"]["preStop"]["exec"]["command"][2], f"{where}: ranks are not told")


def main():
    job = yaml.safe_load((FOLDER / "mpijob.yaml").read_text())
    check((job["apiVersion"], job["kind"]) == ("kubeflow.org/v2beta1", "MPIJob"), "mpijob.yaml: another kind")
    fits(MPIJOB, job["spec"], "mpijob.yaml")
    workers = job["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"] * job["spec"]["slotsPerWorker"]
    arguments = job["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"][0]["args"]
    check(arguments[:2] == ["-np", str(workers)], "mpijob.yaml: mpirun starts another number of ranks")
    check_time_to_save(arguments, [spec["template"]["spec"] for spec in job["spec"]["mpiReplicaSpecs"].values()],
                       "mpijob.yaml")
    runtime, train = yaml.safe_load_all((FOLDER / "trainjob.yaml").read_text())
    same(models.TrainerV1alpha1ClusterTrainingRuntime, runtime, "ClusterTrainingRuntime")
    same(models.TrainerV1alpha1TrainJob, train, "TrainJob")
    check_time_to_save(train["spec"]["trainer"]["args"],
                       [one["template"]["spec"]["template"]["spec"] for one in
                        runtime["spec"]["template"]["spec"]["replicatedJobs"]], "trainjob.yaml")
    check(train["spec"]["runtimeRef"]["name"] == runtime["metadata"]["name"], "trainjob.yaml: another runtime")
    print(f"clusters: {checks} checks passed")


main()
