# Sourced: machines of their own for ranks, as network namespaces joined by a bridge. Needs root and iproute2.
# shellcheck shell=bash

# Runs the calling script again in namespaces of its own, where what it makes ends with it.
enter_own_network() {  # the script, its arguments
  [[ -z ${HEDDLE_OWN_NETWORK:-} ]] || return 0
  ((EUID == 0)) || { echo "ranks: namespaces of the network need root" >&2; exit 1; }
  command -v ip >/dev/null || { echo "ranks: the program ip is needed (package iproute2)" >&2; exit 1; }
  export HEDDLE_OWN_NETWORK=1
  exec unshare -nm --propagation private bash "$@"
}

# Machines n0 .. of addresses 10.9.0.1 .., each with its name.
make_machines() {  # how many
  local i
  mount -t tmpfs tmpfs /run/netns 2>/dev/null || { mkdir -p /run/netns && mount -t tmpfs tmpfs /run/netns; }
  ip link set lo up
  ip link add between type bridge
  ip link set between up
  for ((i = 0; i < $1; ++i)); do
    ip netns add "n$i"
    ip link add "v$i" type veth peer name eth0 netns "n$i"
    ip link set "v$i" master between up
    ip -n "n$i" link set lo up
    ip -n "n$i" address add "10.9.0.$((i + 1))/24" dev eth0
    ip -n "n$i" link set eth0 up
  done
}

cut_link() { ip link set "v$1" down; }
mend_link() { ip link set "v$1" up; }

# A command on a machine, as if it had its own name.
on_machine() {  # number, command
  local i=$1
  shift
  exec ip netns exec "n$i" unshare -u bash -c 'hostname "$0"; exec "$@"' "n$i" "$@"
}

# Bytes leave and reach each machine at this rate (`10gbit`, see tc-tbf(8)).
limit_links() {  # how many machines, rate
  local i
  for ((i = 0; i < $1; ++i)); do
    tc qdisc replace dev "v$i" root tbf rate "$2" burst 256kb latency 50ms
    tc -n "n$i" qdisc replace dev eth0 root tbf rate "$2" burst 256kb latency 50ms
  done
}

# A control group of at most so many thousandths of a core; prints the file that processes enter it by.
make_quota() {  # name, thousandths, microseconds of a period (4000: who waits for another seldom finds it stopped)
  local folder=/sys/fs/cgroup/cpu/$1
  local period=${3:-4000}
  if [[ -d /sys/fs/cgroup/cpu ]]; then
    mkdir -p "$folder"
    echo $period >"$folder/cpu.cfs_period_us"
    echo $((period * $2 / 1000)) >"$folder/cpu.cfs_quota_us"
  else
    folder=/sys/fs/cgroup/$1
    mkdir -p "$folder"
    echo "$((period * $2 / 1000)) $period" >"$folder/cpu.max"
  fi
  echo "$folder/cgroup.procs"
}

# What no process is in any more.
drop_quota() {  # name
  rmdir "/sys/fs/cgroup/cpu/$1" 2>/dev/null || rmdir "/sys/fs/cgroup/$1" 2>/dev/null || true
}
