#!/usr/bin/env bash
# What `./dev test --ranks` runs: machines as namespaces that lose a rank, and machines that SimGrid simulates.
# RANKS_BUILD: the folder of the build (default build)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

passed=0 failed=0
log=$(mktemp)
trap 'rm -f "$log"' EXIT
add() {  # a command that closes with "N passed, N failed"
  local status=0 p=0 f=1
  "$@" 2>&1 | tee "$log" || status=$?
  read -r p f < <(tail -n 1 "$log" | sed -nE 's/^([0-9]+) passed, ([0-9]+) failed$/\1 \2/p') || { p=0 f=1; }
  ((status == 0 || f > 0)) || f=1
  passed=$((passed + p)) failed=$((failed + f))
}

simulated=${RANKS_BUILD:-build}/bin/heddle_simulated_ranks
add "$simulated" base 2 10GbE 50
add "$simulated" tiny 0.1 10GbE 50
add tests/ranks/lost_rank.sh
echo "$passed passed, $failed failed"
((failed == 0))
