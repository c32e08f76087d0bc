#!/usr/bin/env bash
# What several ranks bring, measured on one machine of few cores by slowing time down: each of R ranks is a machine of
# its own that has an equal share of the cores (one at most), and its link is slower by the same factor. Beside them R
# trainings that are alone, under the same quotas: their tokens a second are what R ranks would do without any cost.
# usage: tests/ranks/scaling.sh RATE R..    RATE: of a link, in Mbit/s (10000); R: 2, 4, 8; needs root
#   SCALING_TOKENS    of a batch, for each rank (2048)
#   SCALING_UPDATES   that are measured, behind a first one (3)
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
"${variants[0]%% *}" phrasebook --out "$folder/data" --pairs 100000 --held-out 20 >/dev/null 2>&1

# train by one process on a machine
train() {  # number, RUN, tokens of a batch, shards, program and words
  local machine=$1 out=$2
  local -a words
  read -r -a words <<<"$5"
  {
    echo $BASHPID >"$(make_quota "heddle-scaling-$machine" "$quota")"
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
# Median of the tokens a second of its updates.
speed_of() {
  grep -o '"tokens_per_second": *[0-9.]*' "$1/log.jsonl" | cut -d : -f 2 | tail -n +2 | head -n "$updates" | sort -g |
    awk '{v[NR] = $1} END {print (v[int((NR + 1) / 2)] + v[int((NR + 2) / 2)]) / 2}'
}

echo "| ranks | a core each | link | | alone, tokens/s | together | efficiency | slowest rank |"
echo "| --- | --- | --- | --- | --- | --- | --- | --- |"
for ranks in "$@"; do
  quota=$((1000 * cores / ranks))  # thousandths of a core
  ((quota <= 1000)) || quota=1000
  link=$((rate * quota / 1000))
  limit_links "$ranks" "${link}mbit"
  for ((i = 0; i < ranks; ++i)); do train "$i" "$folder/alone-$i" "$tokens" 1 "${variants[0]}"; done
  for ((i = 0; i < ranks; ++i)); do wait_for "$folder/alone-$i"; done
  alone=$(for ((i = 0; i < ranks; ++i)); do speed_of "$folder/alone-$i"; done | awk '{sum += $1} END {print sum}')
  stop
  for variant in "${variants[@]}"; do
    export HEDDLE_RENDEZVOUS=tcp://10.9.0.1:29500 HEDDLE_RANKS=$ranks
    for ((i = 0; i < ranks; ++i)); do
      HEDDLE_RANK=$i train "$i" "$folder/together" $((tokens * ranks)) "$ranks" "$variant"
    done
    unset HEDDLE_RENDEZVOUS HEDDLE_RANKS
    wait_for "$folder/together"
    together=$(speed_of "$folder/together")
    slowest=$({ grep -o 'slowest: rank [0-9]*, +[0-9]* %' "$folder/together.0.log" || true; } | tail -n 1 | cut -d , -f 2)
    stop
    awk -v r="$ranks" -v q="$quota" -v l="$link" -v a="$alone" -v t="$together" -v v="${variant##*/}" -v s="$slowest" 'BEGIN {
      printf "| %d | %.2f | %.2f Gbit/s | %s | %.0f | %.0f | %.1f %% |%s |\n", r, q / 1000, l / 1000, v, a, t, 100 * t / a, s }'
    rm -rf "$folder"/together*
  done
  rm -rf "$folder"/alone-*
done
