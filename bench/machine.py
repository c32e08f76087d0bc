"""What machine and which commit a figure is from."""
import os
import pathlib
import platform
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent


def read(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def describe(unit=None):
    """Processor, its matrix and vector units, cores, memory, system; and a name for files.
    unit: of plan.UNITS, what programs are limited to"""
    cpu = read("/proc/cpuinfo")

    def of_cpu(key):
        found = re.search(rf"^{key}\s*:\s*(.*)$", cpu, re.MULTILINE)
        return found.group(1).strip() if found else ""

    flags = set(of_cpu("flags").split())
    memory = re.search(r"^MemTotal:\s*(\d+)", read("/proc/meminfo"), re.MULTILINE)
    processor = of_cpu("model name") or platform.processor() or platform.machine()
    system = re.search(r'^PRETTY_NAME="?([^"\n]*)', read("/etc/os-release"), re.MULTILINE)
    machine = {
        "processor": re.sub(r"\((R|TM)\)", "", processor).replace("  ", " ").strip(),
        "family_model_stepping": [of_cpu("cpu family"), of_cpu("model"), of_cpu("stepping")],
        "cores": len(os.sched_getaffinity(0)),
        "amx": "amx_bf16" in flags,
        "avx512_bf16": "avx512_bf16" in flags,
        "avx512": "avx512f" in flags,
        "memory_gib": round(int(memory.group(1)) / 2**20, 1) if memory else None,
        "system": system.group(1) if system else platform.system(),
    }
    # Clouds call processors of several kinds by one name.
    kind = "-".join([machine["processor"].lower(), *machine["family_model_stepping"][:2]])
    machine["name"] = re.sub(r"[^a-z0-9]+", "-", kind).strip("-")
    machine["name"] += "-amx" if machine["amx"] else ""
    machine["name"] += f"-{machine['cores']}"
    if unit:
        machine["unit"] = unit
        machine["name"] += "-" + unit.replace("_", "-")
    return machine


def sentence(machine):
    """For people: "Intel Xeon Processor (family 6, model 207, stepping 2) with AMX, 2 cores, ..."."""
    family, model, stepping = machine["family_model_stepping"]
    units = ("AMX" if machine["amx"] else "AVX-512 BF16, no AMX" if machine["avx512_bf16"]
             else "AVX-512, no AMX" if machine["avx512"] else "no AVX-512")
    memory = f", {machine['memory_gib']} GiB" if machine["memory_gib"] else ""
    limit = f", limited to {machine['unit']}" if "unit" in machine else ""
    return (f"{machine['processor']} (family {family}, model {model}, stepping {stepping}; {units}), "
            f"{machine['cores']} cores{memory}, {machine['system']}{limit}")


def commit():
    """The commit that figures are of, with a + where files differ from it."""
    def git(*words):
        return subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, text=True,
                              check=False).stdout.strip()
    changed = git("status", "--porcelain", "--untracked-files=no", "--", "heddle", "CMakeLists.txt")
    return git("rev-parse", "--short", "HEAD") + ("+" if changed else "")
