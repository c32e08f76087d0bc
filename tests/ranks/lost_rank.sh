#!/usr/bin/env bash
# Four ranks train on machines of their own; one is killed, stopped or cut off, finds its disk full, never starts, or
# starts late. All others must name it and end within 30 s with the right exit code, none may be left behind, and what was
# saved goes on; for one that is late they wait.
# usage: tests/ranks/lost_rank.sh [TIMES [KINDS]]    needs root; TIMES of each (default 1)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
source tests/ranks/network.sh
enter_own_network tests/ranks/lost_rank.sh "$@"

times=${1:-1}
read -r -a kinds <<<"${2:-killed stopped cut full missing late}"
program=${RANKS_PROGRAM:-$PWD/build/bin/heddle}
folder=$(mktemp -d)
trap 'umount "$folder/disk" 2>/dev/null || true; rm -rf "$folder"' EXIT
HEDDLE_SECRET=$(head -c 32 /dev/urandom | od -An -tx1 | tr -d ' \n')
export HEDDLE_SECRET
make_machines 4
mkdir "$folder/disk"
mount -t tmpfs -o size=64m tmpfs "$folder/disk"  # a small disk, which all machines see

"$program" phrasebook --out "$folder/data" --pairs 4000 --held-out 50 >/dev/null 2>&1
command=("$program" train --data "$folder/data" --out "$folder/disk/run" --shards 4 --threads 1 --vocab-size 500
  --encoder-layers 1 --decoder-layers 1 --d-model 64 --batch-tokens 1000 --validate-every 1000000 --max-updates 1000000
  --checkpoint-every 20 --start-seconds 10)

passed=0 failed=0 wrong=0 pids=()
complain() {
  echo "  WRONG: $1"
  wrong=1
}
start_ranks() {  # which
  local rank
  for rank in "$@"; do
    HEDDLE_RENDEZVOUS=tcp://10.9.0.1:29500 HEDDLE_RANK=$rank HEDDLE_RANKS=4 \
      on_machine "$rank" "${command[@]}" >"$folder/$rank.log" 2>&1 </dev/null &
    pids[rank]=$!
  done
}
# Waits for a rank, which must end with this code within 30 s of `start`, and say this.
expect_end() {  # rank, exit code, words (none: nothing is asked)
  local code=0
  wait "${pids[$1]}" || code=$?
  ((code == $2)) || complain "rank $1 ended with exit code $code"
  ((SECONDS - start <= 30)) || complain "rank $1 ended after $((SECONDS - start)) s"
  [[ -z $3 ]] || grep -q "$3" "$folder/$1.log" || complain "rank $1 does not say '$3': $(tail -n 1 "$folder/$1.log")"
}
# Waits until there is a saved state, 60 s at most.
await_state() {
  local i
  for ((i = 0; i < 600; ++i)); do
    [[ ! -e $folder/disk/run/state/manifest.json ]] || return 0
    sleep 0.1
  done
  complain "no state was saved: $(tail -n 1 "$folder/0.log")"
}

lose() {  # killed, stopped, cut; which rank
  local how=$1 lost=$2 rank
  start_ranks 0 1 2 3
  await_state
  start=$SECONDS
  case $how in
    killed) kill -KILL "${pids[lost]}" || complain "rank $lost had ended" ;;
    stopped) kill -STOP "${pids[lost]}" || complain "rank $lost had ended" ;;
    cut) cut_link "$lost" ;;
  esac
  for rank in 0 1 2 3; do
    if ((rank != lost)); then
      expect_end "$rank" 7 "rank $lost (n$lost)"
    elif [[ $how == cut ]]; then  # which sees no more than that others are gone
      expect_end "$rank" 7 "rank [0-3] (n[0-3]) was last heard"
    fi
  done
  [[ $how != cut ]] || mend_link "$lost"
  kill -KILL "${pids[lost]}" 2>/dev/null || true
  wait "${pids[lost]}" 2>/dev/null || true
}

# Where rank 0 writes there is no room any more.
fill_disk() {
  local rank
  start_ranks 0 1 2 3
  await_state
  start=$SECONDS
  cat /dev/zero >"$folder/disk/filled" 2>/dev/null || true
  expect_end 0 6 "No space left"
  for rank in 1 2 3; do expect_end "$rank" 7 "rank 0 (n0): "; done
  rm "$folder/disk/filled"
}

# All wait for the rank that they are told of, and say which.
miss() {  # which rank
  local rank others=() words="rank $1 did not start within 10 s"
  (($1 > 0)) || words="could not reach rank 0 at 10.9.0.1:29500 within 10 s"
  for rank in 0 1 2 3; do ((rank == $1)) || others+=("$rank"); done
  start=$SECONDS
  start_ranks "${others[@]}"
  for rank in "${others[@]}"; do expect_end "$rank" 7 "$words"; done
}

# One that comes 6 s late is waited for; a signal to it then ends all, saved.
be_late() {  # which rank
  local rank
  for rank in 0 1 2 3; do ((rank == $1)) || start_ranks "$rank"; done
  sleep 6
  start_ranks "$1"
  await_state
  start=$SECONDS
  kill -TERM "${pids[$1]}" || complain "rank $1 had ended"
  expect_end 0 143 "stopped at update"
  for rank in 1 2 3; do expect_end "$rank" 143 ""; done
}

# What was saved goes on, by one process too.
expect_it_goes_on() {
  local code=0 i pid
  : >"$folder/alone.log"  # before the process is: what an earlier one said is not taken for its word
  "${command[@]}" >"$folder/alone.log" 2>&1 </dev/null &
  pid=$!
  for ((i = 0; i < 600; ++i)); do
    ! grep -q "resuming" "$folder/alone.log" || break
    sleep 0.1
  done
  kill -TERM "$pid" || complain "what was saved had ended"
  wait "$pid" || code=$?
  ((code == 143)) || complain "what was saved ends with exit code $code: $(tail -n 1 "$folder/alone.log")"
  grep -q "resuming .* at update [1-9]" "$folder/alone.log" || complain "it begins anew: $(head -n 3 "$folder/alone.log")"
}

try() {  # kind, which rank
  wrong=0
  rm -rf "$folder/disk/run"
  case $1 in
    full) fill_disk ;;
    missing) miss "$2" ;;
    late) be_late "$2" ;;
    *) lose "$1" "$2" ;;
  esac
  local rank
  printf '  rank %d %s: all others ended after %d s: %s\n' "$2" "$1" "$((SECONDS - start))" \
    "$(tail -n 1 "$folder/$((($2 + 1) % 4)).log")"
  for rank in 0 1 2 3; do
    [[ -z $(ip netns pids "n$rank") ]] || complain "machine n$rank still has a process"
  done
  [[ $1 == missing ]] || expect_it_goes_on
  if ((wrong)); then failed=$((failed + 1)); else passed=$((passed + 1)); fi
}

for ((time = 1; time <= times; ++time)); do
  for kind in "${kinds[@]}"; do
    if [[ $kind == full ]]; then try full 0; else try "$kind" $(((time + 1) % 4)); fi
  done
done
echo "$passed passed, $failed failed"
((failed == 0))
