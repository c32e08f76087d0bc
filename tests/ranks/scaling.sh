#!/usr/bin/env bash
# What several ranks bring, measured on one machine of few cores by slowing time down: each of R ranks is a machine of
# its own that has an equal share of the cores (one at most), and its link is slower by the same factor.
# What a shared or virtual machine does in a second, or in a processor second, changes from minute to minute. So as many
# trainings that are alone as there are cores take turns with the ranks, some seconds each, all others stopped: what
# either needs for an update is processor seconds of the same minutes. Batches are cut into shards of equally many tokens
# (but for a pair), so that a rank that needs more than the mean of them is the machine's doing:
#   efficiency = processor seconds alone / (those of the mean rank + seconds on the wire * its share of a core)
# and, with those of the slowest rank in place of the mean one's, what it is at least. Beside it stands what the closed
# form of `heddle analyze --ranks` says, from what it takes alone.
# usage: tests/ranks/scaling.sh RATE R..    RATE: of a link, in Mbit/s (10000); R: 2, 4, 8; needs root
#   SCALING_TOKENS    of a batch, for each rank (2048)
#   SCALING_UPDATES   that are measured, behind a first one (3)
#   SCALING_TURN      seconds of a turn (4)
#   SCALING_EXCHANGE  nanoseconds of a core for a byte that is sent (0.75)
#   SCALING_VARIANTS  programs and more words for train, between semicolons (build/bin/heddle)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
source tests/ranks/network.sh
enter_own_network tests/ranks/scaling.sh "$@"

rate=$1
shift
tokens=${SCALING_TOKENS:-2048} updates=${SCALING_UPDATES:-3} turn=${SCALING_TURN:-4}
IFS=';' read -r -a variants <<<"${SCALING_VARIANTS:-$PWD/build/bin/heddle}"
most=8 cores=$(nproc) folder=$(mktemp -d) pids=() alone=() others=()
stop() {
  local pid
  for pid in "${others[@]}" "${alone[@]}" "${pids[@]}"; do
    kill -KILL "$pid" 2>/dev/null || true
    while kill -0 "$pid" 2>/dev/null; do sleep 0.1; done
  done
  pids=() alone=() others=()
}
clean_up() {
  stop
  local i
  for ((i = 0; i < most + cores; ++i)); do drop_quota "heddle-scaling-$i"; done
  rm -rf "$folder"
}
trap clean_up EXIT
HEDDLE_SECRET=$(head -c 32 /dev/urandom | od -An -tx1 | tr -d ' \n')
export HEDDLE_SECRET
make_machines $((most + cores))
"${variants[0]%% *}" phrasebook --out "$folder/data" --pairs 20000 --held-out 20 >/dev/null 2>&1

# train by one process on a machine
train() {  # number, thousandths of a core, RUN, tokens of a batch, shards, program and words
  local machine=$1 quota=$2
  shift
  local out=$2
  local -a words
  read -r -a words <<<"$5"
  {
    # 60 ms: a rank finds the caches filled by others as it comes to a core; in periods of 4 ms that took 4 to 12 %.
    echo $BASHPID >"$(make_quota "heddle-scaling-$machine" "$quota" 60000)"
    # On one core: what a group's quota lends to one core is not there for its threads on another.
    taskset -cp $((machine % cores)) $BASHPID >/dev/null
    on_machine "$machine" "${words[0]}" train --data "$folder/data" --out "$out" --preset base --vocab-size 4000 \
      --batch-tokens "$3" --shards "$4" --threads 1 --log-every 1 --validate-every 1000000 --max-updates 1000000 \
      --checkpoint-every 1000000 --seed 7 "${words[@]:1}"
  } >"$out.$machine.log" 2>&1 </dev/null &
  pids+=($!)
  disown
}

# Waits until a run has done what is to be measured. Behind each update it writes the time, and what processor time
# each of these processes has had, and its thread that trains, in seconds.
watch_updates() {  # RUN, output, processes
  local log=$1/log.jsonl output=$2 lines seen=0
  shift 2
  until ((seen > updates)); do
    sleep 0.05
    kill -0 "$@" 2>/dev/null || { tail -n 3 "$folder"/*.log >&2; exit 1; }
    lines=$([[ ! -e $log ]] || grep -c tokens_per_second "$log" || true)
    ((${lines:-0} > seen)) || continue
    seen=$lines
    {
      date +%s.%N
      local pid
      for pid in "$@"; do cat "/proc/$pid/task/"*/schedstat | awk '{sum += $1} END {print sum / 1e9}'; done
      for pid in "$@"; do awk '{print $1 / 1e9}' "/proc/$pid/task/$pid/schedstat"; done
    } | paste -sd ' ' >>"$output"
  done
}
# Of what it wrote: seconds of an update, processor seconds of the mean rank, of its thread that trains, and of the
# slowest rank.
update_of() {  # output..
  cat "$@" | awk '
    NF && $1 > last && NR > 1 {
      most = 0
      ranks = (NF - 1) / 2
      for (i = 2; i <= NF; ++i) {
        own = $i - before[i]
        if (i > ranks + 1) { trains += own / ranks; continue }
        sum += own / ranks
        if (own > most) most = own
      }
      slowest += most; seconds += $1 - last; ++n
    }
    { last = $1; for (i = 2; i <= NF; ++i) before[i] = $i }
    END { printf "%.3f %.3f %.3f %.3f", seconds / n, sum / n, trains / n, slowest / n }'
}
# Lets a run end by itself, and prints how much of the time of all ranks was spent on computing, on waiting, on the wire;
# one rank is no group, says nothing of it and computes all the time.
shares_of() {
  local pid
  kill -TERM "${pids[0]}"
  for pid in "${pids[@]}"; do
    while kill -0 "$pid" 2>/dev/null; do sleep 0.2; done
  done
  pids=()
  { grep -h ' on the wire$' "$1.0.log" || true; } | sed 's/.*): //' | awk -F ', ' '
    function seconds(text, words, n, i, sum) {
      n = split(text, words, " ")
      for (i = 2; i <= n; ++i) sum += words[i - 1] * (words[i] == "h" ? 3600 : words[i] == "min" ? 60 : words[i] == "s")
      return sum
    }
    { for (i = 1; i <= 3; ++i) { of[i] += seconds($i); all += seconds($i) } }
    END {
      if (all == 0) of[1] = all = 1
      printf "%.1f %% | %.1f %% | %.1f %%", 100 * of[1] / all, 100 * of[2] / all, 100 * of[3] / all
    }'
}
# Seconds of an update by the closed form.
predict() {  # ranks, processor seconds alone
  "${variants[0]%% *}" analyze base --set vocab_size=4000 --ranks "$1" --link "${rate}MbE" \
    --exchange "${SCALING_EXCHANGE:-0.75}" --update "$(awk -v r="$1" -v a="$2" 'BEGIN {print r * a}')" --json |
    grep -o '"seconds": [0-9.e+-]*' | tail -n 1 | cut -d ' ' -f 2
}
# Those that are alone, and those of the group, by turns.
take_turns() {
  while :; do
    kill -STOP "${alone[@]}"
    kill -CONT "${pids[@]}"
    sleep "$turn"
    kill -STOP "${pids[@]}"
    kill -CONT "${alone[@]}"
    sleep "$turn"
  done 2>/dev/null
}

echo "processor seconds and seconds are of an update"
echo "| ranks | a core each | link | | computing | waiting | wire | seconds | processor s alone | together |" \
  "of it training | slowest | efficiency | at least | closed form | apart |"
echo "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"
for ranks in "$@"; do
  quota=$((1000 * cores / ranks))  # thousandths of a core
  ((quota <= 1000)) || quota=1000
  link=$((rate * quota / 1000))
  limit_links "$ranks" "${link}mbit"
  for variant in "${variants[@]}"; do
    for ((i = 0; i < (ranks < cores ? ranks : cores); ++i)); do
      train $((most + i)) 1000 "$folder/alone-$i" "$tokens" 1 "${variants[0]}"
    done
    alone=("${pids[@]}") pids=()
    for ((i = 0; i < (ranks < cores ? ranks : cores); ++i)); do
      updates=1000000 watch_updates "$folder/alone-$i" "$folder/alone-$i.times" "${alone[i]}" &
      others+=($!)
      disown
    done
    export HEDDLE_RENDEZVOUS=tcp://10.9.0.1:29500 HEDDLE_RANKS=$ranks
    for ((i = 0; i < ranks; ++i)); do
      HEDDLE_RANK=$i train "$i" "$quota" "$folder/together" $((tokens * ranks)) "$ranks" "$variant"
    done
    unset HEDDLE_RENDEZVOUS HEDDLE_RANKS
    take_turns &
    others+=($!)
    disown
    watch_updates "$folder/together" "$folder/together.times" "${pids[@]}"
    together=("${pids[@]}") pids=()
    stop
    pids=("${together[@]}")
    kill -CONT "${pids[@]}"
    read -r seconds mean trains slowest <<<"$(update_of "$folder/together.times")"
    own=$(for ((i = 0; i < (ranks < cores ? ranks : cores); ++i)); do update_of "$folder/alone-$i.times"; echo; done |
      awk '{sum += $2} END {print sum / NR}')
    shares=$(shares_of "$folder/together")
    awk -v r="$ranks" -v q="$quota" -v l="$link" -v a="$own" -v v="${variant##*/}" -v of="$shares" -v t="$seconds" \
      -v m="$mean" -v s="$slowest" -v trains="$trains" -v p="$(predict "$ranks" "$own")" 'BEGIN {
      split(of, share, "|")
      t /= 2  # of its turns
      wire = t * share[3] / 100 * q / 1000
      printf "| %d | %.2f | %.2f Gbit/s | %s | %s | %.2f | %.3f | %.3f | %.3f | %.3f | %.1f %% | %.1f %% | %.3f | %.1f %% |\n",
        r, q / 1000, l / 1000, v, of, t, a, m, trains, s, 100 * a / (m + wire), 100 * a / (s + wire), p,
        100 * p / (m + wire) - 100 }'
    rm -rf "$folder"/together* "$folder"/alone-*
  done
done
