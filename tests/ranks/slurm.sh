#!/usr/bin/env bash
# A cluster of two machines (namespaces of the network) under Slurm: deploy/heddle.sbatch trains there by PMIx, and where
# srun knows no PMIx by a port of the first machine; both must end in the bits of one process. Run by hand: it needs root,
# and the packages iproute2, slurmctld, slurmd, slurm-client, slurm-wlm-basic-plugins, munge.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
source tests/ranks/network.sh
enter_own_network tests/ranks/slurm.sh "$@"

program=${RANKS_PROGRAM:-$PWD/build/bin/heddle}
folder=$(mktemp -d)
pids=()
leave() {
  ((${#pids[@]} == 0)) || kill "${pids[@]}" 2>/dev/null || true
  wait
  rm -rf "$folder"
}
trap leave EXIT
make_machines 2

# `ip netns exec` would put a new /sys in place, without the control groups that slurmd asks for.
on_machine() {  # number, command
  local i=$1
  shift
  exec nsenter --net="/run/netns/n$i" unshare -u bash -c 'hostname "$0"; exec "$@"' "n$i" "$@"
}

mkdir -p "$folder"/{state,spool-n0,spool-n1,tmp-n0,tmp-n1,bin}
printf '127.0.0.1 localhost\n10.9.0.1 n0\n10.9.0.2 n1\n' >"$folder/hosts"
mount --bind "$folder/hosts" /etc/hosts
cat >"$folder/slurm.conf" <<END
ClusterName=heddle
SlurmctldHost=n0(10.9.0.1)
AuthInfo=socket=$folder/munge.socket
ProctrackType=proctrack/linuxproc
SwitchType=switch/none
TaskPlugin=task/none
SelectType=select/cons_tres
ReturnToService=2
SlurmUser=root
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd-%n.pid
SlurmdSpoolDir=$folder/spool-%n
StateSaveLocation=$folder/state
TmpFS=$folder/tmp-%n
NodeName=n0 NodeAddr=10.9.0.1 NodeHostname=n0 CPUs=2
NodeName=n1 NodeAddr=10.9.0.2 NodeHostname=n1 CPUs=2
PartitionName=all Nodes=ALL Default=YES State=UP
END
export SLURM_CONF=$folder/slurm.conf
head -c 1024 /dev/urandom >"$folder/munge.key"
chmod 0700 "$folder"
chmod 0600 "$folder/munge.key"
munged --foreground --force --socket="$folder/munge.socket" --key-file="$folder/munge.key" \
  --pid-file="$folder/munged.pid" --log-file="$folder/munged.log" --seed-file="$folder/munge.seed" >"$folder/daemons.log" 2>&1 &
pids+=($!)
sleep 1
for daemon in "0 slurmctld -D" "0 slurmd -D -N n0" "1 slurmd -D -N n1"; do
  # shellcheck disable=SC2086
  on_machine $daemon >>"$folder/daemons.log" 2>&1 &
  pids+=($!)
done
for ((i = 0; i < 30; ++i)); do
  if [[ $(on_machine 0 sinfo -h -o %t) == idle ]]; then break; fi
  sleep 1
done

"$program" phrasebook --out "$folder/data" --pairs 2000 --held-out 20 >/dev/null 2>&1
flags=(--data "$folder/data" --shards 2 --threads 1 --vocab-size 400 --encoder-layers 1 --decoder-layers 1 --d-model 64
  --batch-tokens 1000 --max-updates 40 --validate-every 20)
"$program" train "${flags[@]}" --out "$folder/alone" >/dev/null 2>&1
checksum() { sha256sum <"$1/last/model.safetensors"; }

passed=0 failed=0
train_with() {  # name, PATH of the job
  local log="$folder/$1.log"
  (PATH=$2 on_machine 0 sbatch --wait --nodes=2 --cpus-per-task=1 --output="$log" deploy/heddle.sbatch "${flags[@]}" \
    --out "$folder/$1") >/dev/null || true
  if grep -q 'rank 1 (n1): .* computing' "$log" && [[ $(checksum "$folder/$1") == "$(checksum "$folder/alone")" ]]; then
    echo "  $1: two machines, the bits of one process"
    passed=$((passed + 1))
  else
    echo "  $1: WRONG"
    tail -n 20 "$log" "$folder/daemons.log" || true
    failed=$((failed + 1))
  fi
}

path=$(dirname "$program"):$PATH
train_with pmix "$path"
# An srun that knows no PMIx.
printf '#!/bin/bash\n[[ $1 == --mpi=list ]] || exec %q "$@"\necho none\n' "$(command -v srun)" >"$folder/bin/srun"
chmod +x "$folder/bin/srun"
train_with port "$folder/bin:$path"
echo "$passed passed, $failed failed"
((failed == 0))
