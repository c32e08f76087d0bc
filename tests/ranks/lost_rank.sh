#!/usr/bin/env bash
# Four ranks train on machines of their own; one is killed, stopped, or cut off. All others must name it and end within
# 30 s with exit code 7, and none may be left behind.
# usage: tests/ranks/lost_rank.sh [TIMES]    needs root; TIMES of each (default 1)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
source tests/ranks/network.sh
enter_own_network tests/ranks/lost_rank.sh "$@"

times=${1:-1}
program=${RANKS_PROGRAM:-$PWD/build/bin/heddle}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export HEDDLE_SECRET=$(head -c 32 /dev/urandom | od -An -tx1 | tr -d ' \n')
make_machines 4

"$program" phrasebook --out "$folder/data" --pairs 4000 --held-out 50 >/dev/null 2>&1
read -r -d '' -a command <<<"${RANKS_COMMAND:-$program train --data $folder/data --out $folder/run --shards 4 --threads 1
  --vocab-size 500 --encoder-layers 1 --decoder-layers 1 --d-model 64 --batch-tokens 1000 --validate-every 1000000
  --max-updates 1000000}" || true  # at its end read says so

passed=0 failed=0 wrong=0
complain() {
  echo "  WRONG: $1"
  wrong=1
}

# One training that loses a rank; what it prints goes to $folder/RANK.log.
lose() {  # killed, stopped, cut; which rank
  local how=$1 lost=$2 rank pids=() start code seconds
  wrong=0
  rm -rf "$folder/run"
  for rank in 0 1 2 3; do
    HEDDLE_RENDEZVOUS=tcp://10.9.0.1:29500 HEDDLE_RANK=$rank HEDDLE_RANKS=4 \
      on_machine "$rank" "${command[@]}" >"$folder/$rank.log" 2>&1 </dev/null &
    pids+=($!)
  done
  sleep "${RANKS_WARMUP:-8}"
  for rank in 0 1 2 3; do
    kill -0 "${pids[rank]}" 2>/dev/null || complain "rank $rank ended too early: $(tail -n 1 "$folder/$rank.log")"
  done
  if ((wrong)); then
    kill -KILL "${pids[@]}" 2>/dev/null || true
    wait "${pids[@]}" 2>/dev/null || true
    return
  fi
  start=$SECONDS
  case $how in
    killed) kill -KILL "${pids[lost]}" ;;
    stopped) kill -STOP "${pids[lost]}" ;;
    cut) cut_link "$lost" ;;
  esac
  for rank in 0 1 2 3; do
    if ((rank == lost)) && [[ $how != cut ]]; then continue; fi
    code=0
    wait "${pids[rank]}" || code=$?
    seconds=$((SECONDS - start))
    ((code == 7)) || complain "rank $rank ended with exit code $code"
    ((seconds <= 30)) || complain "rank $rank ended after $seconds s"
    # One that is cut off itself sees no more than that rank 0 is gone.
    if ((rank != lost)) && ! grep -q "rank $lost (n$lost)" "$folder/$rank.log"; then
      complain "rank $rank does not name rank $lost: $(tail -n 1 "$folder/$rank.log")"
    fi
  done
  printf '  rank %d %s: all others ended after %d s: %s\n' "$lost" "$how" "$((SECONDS - start))" \
    "$(tail -n 1 "$folder/$(((lost + 1) % 4)).log")"
  [[ $how != cut ]] || mend_link "$lost"
  kill -KILL "${pids[lost]}" 2>/dev/null || true
  wait "${pids[lost]}" 2>/dev/null || true
  for rank in 0 1 2 3; do
    [[ -z $(ip netns pids "n$rank") ]] || complain "machine n$rank still has a process"
  done
}

for ((time = 1; time <= times; ++time)); do
  for how in killed stopped cut; do
    lose "$how" $(((time + 1) % 4))
    if ((wrong)); then failed=$((failed + 1)); else passed=$((passed + 1)); fi
  done
done
echo "$passed passed, $failed failed"
((failed == 0))
