#!/usr/bin/env bash
# Unmodified clients of OpenAI, DeepL and LibreTranslate against `heddle serve`; their packages come from PyPI, into
# build/clients. usage: tests/clients/run.sh    (by ./dev test --clients); PYTHON: one that has them already
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
program=build/bin/heddle
python=${PYTHON:-}
if [[ -z $python ]]; then
  python=build/clients/bin/python
  [[ -x $python ]] || python3 -m venv build/clients
  "$python" -c 'import deepl, libretranslatepy, openai' 2>/dev/null ||
    "$python" -m pip install --quiet openai deepl libretranslatepy
fi
folder=$(mktemp -d)
server=""
finish() {
  [[ -z $server ]] || kill "$server" 2>/dev/null || true
  rm -rf "$folder"
}
trap finish EXIT
"$program" phrasebook --out "$folder/pairs" --pairs 2000 --held-out 12 2>/dev/null
"$program" train --preset tiny --data "$folder/pairs" --source-lang en --target-lang de --vocab-size 400 --d-model 32 \
  --encoder-ffn-dim 32 --decoder-ffn-dim 32 --max-updates 20 --validate-every 20 --out "$folder/en-de" >/dev/null 2>&1
cat "$folder/pairs/train.en" >"$folder/text"
"$program" train --task causal_lm --data "$folder/text" --n-layer 2 --n-head 4 --n-embd 32 --n-positions 128 \
  --block-size 32 --max-updates 20 --validate-every 20 --out "$folder/lm" >/dev/null 2>&1
"$program" serve "$folder/en-de" "$folder/lm" --port 0 2>"$folder/log" &
server=$!
for _ in $(seq 100); do
  url=$(grep -o 'http://[0-9.:]*' "$folder/log" || true)
  [[ -z $url ]] || break
  sleep 0.1
done
[[ -n $url ]] || { cat "$folder/log" >&2; exit 1; }
"$python" tests/clients/clients.py "$url"
