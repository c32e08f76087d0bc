#!/usr/bin/env bash
# Seconds of a sum that all ranks then know: along the fixed tree, and by each algorithm of Open MPI's MPI_Allreduce, on
# the same links and the same shares of the cores (time is slowed down as in scaling.sh).
# usage: tests/ranks/sums.sh RATE RANKS VALUES [TIMES]    RATE: of a link, in Mbit/s; needs root, openmpi-bin and
#   the target heddle_sum_speed
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
source tests/ranks/network.sh
enter_own_network tests/ranks/sums.sh "$@"

rate=$1 ranks=$2 values=$3 times=${4:-5}
program=$PWD/build/bin/heddle_sum_speed
folder=$(mktemp -d)
clean_up() {
  local i
  for ((i = 0; i < ranks; ++i)); do drop_quota "heddle-sums-$i"; done
  rm -rf "$folder"
}
trap clean_up EXIT
quota=$((1000 * $(nproc) / ranks))  # thousandths of a core
((quota <= 1000)) || quota=1000
make_machines "$ranks"
limit_links "$ranks" "$((rate * quota / 1000))mbit"
hosts=
cp /etc/hosts "$folder/hosts"
for ((i = 0; i < ranks; ++i)); do
  # As this process sees it: `ip netns exec` mounts another /sys.
  echo "/proc/$$/root$(make_quota "heddle-sums-$i" "$quota")" >"$folder/quota-$i"
  echo "10.9.0.$((i + 1)) n$i" >>"$folder/hosts"
  hosts+=n$i:1,
done
mount --bind "$folder/hosts" /etc/hosts

# What mpirun starts its daemons by: a machine, a command.
cat >"$folder/agent" <<'AGENT'
#!/usr/bin/env bash
machine=$1
shift
echo $$ >"$(cat "$(dirname "$0")/quota-${machine#n}")"
taskset -cp $((${machine#n} % CORES)) $$ >/dev/null
exec ip netns exec "$machine" unshare -u bash -c "hostname $machine; $*"
AGENT
sed -i "s/CORES/$(nproc)/" "$folder/agent"
chmod +x "$folder/agent"

enter() {  # machine; as in scaling.sh
  echo $BASHPID >"$(cat "$folder/quota-$1")"
  taskset -cp $(($1 % $(nproc))) $BASHPID >/dev/null
}

tree() {
  local i
  HEDDLE_SECRET=$(head -c 32 /dev/urandom | od -An -tx1 | tr -d ' \n')
  export HEDDLE_SECRET
  export HEDDLE_RENDEZVOUS=tcp://10.9.0.1:29500 HEDDLE_RANKS=$ranks
  for ((i = 0; i < ranks; ++i)); do
    { enter "$i"; HEDDLE_RANK=$i on_machine "$i" "$program" "$values" "$times"; } &
  done
  wait
  unset HEDDLE_RENDEZVOUS HEDDLE_RANKS
}

by_mpi() {  # more words for mpirun
  enter 0
  (OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 on_machine 0 mpirun --mca plm_rsh_agent "$folder/agent" \
    --mca oob_tcp_if_include 10.9.0.0/24 --mca btl tcp,self --mca btl_tcp_if_include 10.9.0.0/24 --mca pml ob1 \
    --mca mpi_yield_when_idle 1 "$@" --host "${hosts%,}" "$program" "$values" "$times" allreduce) 2>"$folder/mpi.log" ||
    { cat "$folder/mpi.log" >&2; exit 1; }
}

echo "| sum of $values values on $ranks ranks, $rate Mbit/s slowed down $((1000 / quota)) times | seconds |"
echo "| --- | --- |"
echo "| the fixed tree | $(tree) |"
echo "| MPI_Allreduce as Open MPI chooses | $(by_mpi) |"
number=0
for algorithm in linear nonoverlapping "recursive doubling" ring "segmented ring" Rabenseifner; do
  number=$((number + 1))
  ((number >= 3)) || continue  # those move every value to one rank
  echo "| MPI_Allreduce, $algorithm | $(by_mpi --mca coll_tuned_use_dynamic_rules 1 \
    --mca coll_tuned_allreduce_algorithm $number) |"
done
