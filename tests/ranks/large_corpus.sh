#!/usr/bin/env bash
# Two ranks train a translator on a cache of tokens that is larger than the machine's memory (50 GB, made sparse: on the
# disk it takes about 1 GB). Every second the memory of each is read: what is its own, and pages of the mapped file, which
# the system may take back. With a limit (root, cgroup v1) both together may not have more, pages of files included.
# usage: tests/ranks/large_corpus.sh [GIGABYTES [LIMIT_GB]]    writes what it saw to $LARGE_CORPUS_LOG (RANK SECONDS OWN FILE, MB)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

gigabytes=${1:-50} limit=${2:-0} updates=${LARGE_CORPUS_UPDATES:-20}
(cd build && ninja heddle heddle_sparse_cache >/dev/null)
program=$PWD/build/bin/heddle sparse=$PWD/build/bin/heddle_sparse_cache
[[ -x $sparse ]] || sparse=$PWD/build/tests/heddle_sparse_cache
folder=$(mktemp -d -p "${LARGE_CORPUS_FOLDER:-/tmp}")
group=
finish() {
  rm -rf "$folder"
  [[ -z $group ]] || rmdir "$group" 2>/dev/null || true
}
trap finish EXIT
log=${LARGE_CORPUS_LOG:-$folder/memory.txt}
: >"$log"

"$program" phrasebook --out "$folder/data" --pairs 4000 --held-out 50 >/dev/null 2>&1
settings=(train --data "$folder/data" --out "$folder/run" --shards 2 --threads 1 --vocab-size 500 --encoder-layers 1
  --decoder-layers 1 --d-model 64 --max-tokens 256 --validate-every 1000000 --checkpoint-every 1000000 --precision f32)
"$program" "${settings[@]}" --max-updates 1 >/dev/null 2>&1
"$sparse" "$folder"/run/cache/train.*.tokens "$gigabytes"
du -h --apparent-size "$folder"/run/cache/train.*.tokens | cut -f1 | sed 's/^/apparent size: /'
du -h "$folder"/run/cache/train.*.tokens | cut -f1 | sed 's/^/on the disk: /'
rm -rf "$folder/run/state"  # another corpus than that of the first update
sync
if ((limit > 0)); then
  group=$(mktemp -d -p /sys/fs/cgroup/memory heddle.XXXX)
  echo $((limit << 30)) >"$group/memory.limit_in_bytes"
fi

pids=() start=$SECONDS
export HEDDLE_RENDEZVOUS=file://$folder/meeting HEDDLE_RANKS=2
for rank in 0 1; do
  (
    [[ -z $group ]] || echo "$BASHPID" >"$group/cgroup.procs"
    HEDDLE_RANK=$rank exec "$program" "${settings[@]}" --max-updates "$updates" --step-seconds 3600
  ) >"$folder/$rank.log" 2>&1 &
  pids+=($!)
done
while kill -0 "${pids[0]}" 2>/dev/null; do
  for rank in 0 1; do
    awk -v who="$rank $((SECONDS - start))" '/^RssAnon/ {own = $2} /^RssFile/ {file = $2}
      END {if (own) printf "%s %d %d\n", who, own / 1024, file / 1024}' "/proc/${pids[rank]}/status" 2>/dev/null >>"$log" || true
  done
  sleep 1
done
code=0
for pid in "${pids[@]}"; do wait "$pid" || code=$?; done
tail -n 4 "$folder/0.log"
for rank in 0 1; do
  awk -v r=$rank '$1 == r {if ($3 > own) own = $3; if ($4 > file) file = $4; end = $2}
    END {printf "rank %d: at most %d MB of its own, %d MB of the mapped file, in %d s\n", r, own, file, end}' "$log"
done
[[ -z $group ]] || echo "of all memory, pages of files included, at most $(($(<"$group/memory.max_usage_in_bytes") >> 20)) MB"
exit "$code"
