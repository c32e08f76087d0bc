#!/usr/bin/env bash
# What several ranks bring, measured on one machine of few cores by slowing time down: each of R ranks is a machine of
# its own that has an equal share of the cores (one at most), and its link is slower by the same factor. Printed is the
# share of the time that ranks say they have computed, all other being waits for others and for the wire. Beside it R
# trainings that are alone, under the same quotas: their tokens a second are what R ranks would do without any cost
# (less sure: they run before, and what a virtual machine has to give changes from minute to minute).
# usage: tests/ranks/scaling.sh RATE R..    RATE: of a link, in Mbit/s (10000); R: 2, 4, 8; needs root
#   SCALING_TOKENS    of a batch, for each rank (2048)
#   SCALING_UPDATES   that are measured, behind a first one (3)
#   SCALING_ALONE     0: no trainings that are alone (1)
#   SCALING_VARIANTS  programs and more words for train, between semicolons (build/bin/heddle)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
source tests/ranks/network.sh
enter_own_network tests/ranks/scaling.sh "$@"

rate=$1
shift
tokens=${SCALING_TOKENS:-2048} updates=${SCALING_UPDATES:-3}
IFS=';' read -r -a variants <<<"${SCALING_VARIANTS:-$PWD/build/bin/heddle}"
most=8 cores=$(nproc) folder=$(mktemp -d) pids=()
stop() {
  local pid
  for pid in "${pids[@]}"; do
    kill -KILL "$pid" 2>/dev/null || true
    while kill -0 "$pid" 2>/dev/null; do sleep 0.1; done
  done
  pids=()
}
clean_up() {
  stop
  local i
  for ((i = 0; i < most; ++i)); do drop_quota "heddle-scaling-$i"; done
  rm -rf "$folder"
}
trap clean_up EXIT
HEDDLE_SECRET=$(head -c 32 /dev/urandom | od -An -tx1 | tr -d ' \n')
export HEDDLE_SECRET
make_machines $most
"${variants[0]%% *}" phrasebook --out "$folder/data" --pairs 20000 --held-out 20 >/dev/null 2>&1

# train by one process on a machine
train() {  # number, RUN, tokens of a batch, shards, program and words
  local machine=$1 out=$2
  local -a words
  read -r -a words <<<"$5"
  {
    echo $BASHPID >"$(make_quota "heddle-scaling-$machine" "$quota")"
    # On one core: what a group's quota lends to one core is not there for its threads on another.
    taskset -cp $((machine % cores)) $BASHPID >/dev/null
    on_machine "$machine" "${words[0]}" train --data "$folder/data" --out "$out" --preset base --vocab-size 4000 \
      --batch-tokens "$3" --shards "$4" --threads 1 --log-every 1 --validate-every 1000000 --max-updates 1000000 \
      --checkpoint-every 1000000 --seed 7 "${words[@]:1}"
  } >"$out.$machine.log" 2>&1 </dev/null &
  pids+=($!)
  disown
}

# Waits until a run has done what is to be measured.
wait_for() {
  until [[ -e $1/log.jsonl ]] && (($(grep -c tokens_per_second "$1/log.jsonl") > updates)); do
    sleep 0.5
    kill -0 "${pids[@]}" 2>/dev/null || { tail -n 3 "$folder"/*.log >&2; exit 1; }
  done
}
# Lets a run end by itself, and prints how much of the time of all ranks was spent on computing, on waiting, on the wire.
shares_of() {
  local pid
  kill -TERM "${pids[0]}"
  for pid in "${pids[@]}"; do
    while kill -0 "$pid" 2>/dev/null; do sleep 0.2; done
  done
  pids=()
  grep -h ' on the wire$' "$1.0.log" | sed 's/.*): //' | awk -F ', ' '
    function seconds(text, words, n, i, sum) {
      n = split(text, words, " ")
      for (i = 2; i <= n; ++i) sum += words[i - 1] * (words[i] == "h" ? 3600 : words[i] == "min" ? 60 : words[i] == "s")
      return sum
    }
    { for (i = 1; i <= 3; ++i) { of[i] += seconds($i); all += seconds($i) } }
    END { printf "%.1f %% | %.1f %% | %.1f %%", 100 * of[1] / all, 100 * of[2] / all, 100 * of[3] / all }'
}
# Median of the tokens a second of its updates.
speed_of() {
  grep -o '"tokens_per_second": *[0-9.]*' "$1/log.jsonl" | cut -d : -f 2 | tail -n +2 | head -n "$updates" | sort -g |
    awk '{v[NR] = $1} END {print (v[int((NR + 1) / 2)] + v[int((NR + 2) / 2)]) / 2}'
}

echo "| ranks | a core each | link | | computing | waiting | wire | slowest rank | tokens/s together | alone |"
echo "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"
for ranks in "$@"; do
  quota=$((1000 * cores / ranks))  # thousandths of a core
  ((quota <= 1000)) || quota=1000
  link=$((rate * quota / 1000))
  limit_links "$ranks" "${link}mbit"
  alone=0
  if ((${SCALING_ALONE:-1})); then
    for ((i = 0; i < ranks; ++i)); do train "$i" "$folder/alone-$i" "$tokens" 1 "${variants[0]}"; done
    for ((i = 0; i < ranks; ++i)); do wait_for "$folder/alone-$i"; done
    alone=$(for ((i = 0; i < ranks; ++i)); do speed_of "$folder/alone-$i"; done | awk '{sum += $1} END {print sum}')
    stop
  fi
  for variant in "${variants[@]}"; do
    export HEDDLE_RENDEZVOUS=tcp://10.9.0.1:29500 HEDDLE_RANKS=$ranks
    for ((i = 0; i < ranks; ++i)); do
      HEDDLE_RANK=$i train "$i" "$folder/together" $((tokens * ranks)) "$ranks" "$variant"
    done
    unset HEDDLE_RENDEZVOUS HEDDLE_RANKS
    wait_for "$folder/together"
    together=$(speed_of "$folder/together")
    slowest=$({ grep -o 'slowest: rank [0-9]*, +[0-9]* %' "$folder/together.0.log" || true; } | tail -n 1 | cut -d , -f 2)
    shares=$(shares_of "$folder/together")
    pids=()
    awk -v r="$ranks" -v q="$quota" -v l="$link" -v a="$alone" -v t="$together" -v v="${variant##*/}" -v s="$slowest" \
      -v of="$shares" 'BEGIN {
      printf "| %d | %.2f | %.2f Gbit/s | %s | %s |%s | %.0f | %.0f |\n", r, q / 1000, l / 1000, v, of, s, t, a }'
    rm -rf "$folder"/together*
  done
  rm -rf "$folder"/alone-*
done
