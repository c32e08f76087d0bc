#!/usr/bin/env bash
# Unmodified clients of OpenAI, DeepL and LibreTranslate against `heddle serve`, of the versions in requirements.txt,
# which come from PyPI into build/clients; a crowd, and a mixed load; then nginx before it, and the alerts and what clusters read, as deploy/ has
# them. Ends with "N passed, N failed". usage: tests/clients/run.sh    (by ./dev test --clients); PYTHON: one that has the clients already
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
program=build/bin/heddle
passed=0
give_up() {  # why
  printf 'clients: %s\n%d passed, 1 failed\n' "$1" "$passed"
  exit 1
}
python=${PYTHON:-}
if [[ -z $python ]]; then
  python=build/clients/bin/python
  [[ -x $python ]] || python3 -m venv build/clients
  "$python" -m pip install --quiet --disable-pip-version-check -r tests/clients/requirements.txt ||
    give_up "their packages did not come from PyPI; is the network there? PYTHON=PATH takes a Python that has them"
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
"$program" train --task causal_lm --data "$folder/text" --tokenizer-type bpe --vocab-size 400 --n-layer 2 --n-head 4 --n-embd 32 --n-positions 128 \
  --block-size 32 --max-updates 20 --validate-every 20 --out "$folder/lm" >/dev/null 2>&1
echo '{% for t in tools or [] %}{{ t.function.name }} {% endfor %}{% for m in messages %}{{ bos_token }}{{ m.role }}: {{ m.content }}{{ eos_token }}{% endfor %}{{ bos_token }}assistant:' \
  >"$folder/lm/best/chat_template.jinja"
cp -r tests/fixtures/texts/encoder tests/fixtures/texts/classify "$folder"
python3 - "$folder/classify/config.json" <<'END'
import json, sys
config = json.load(open(sys.argv[1]))
config["id2label"] = {"0": "fr", "1": "de", "2": "en"}  # its random weights like the last one best
config["label2id"] = {"fr": 0, "de": 1, "en": 2}
json.dump(config, open(sys.argv[1], "w"))
END
ulimit -n "$(ulimit -H -n)"
"$program" serve "$folder/en-de" "$folder/lm" "$folder/encoder" languages="$folder/classify" --port 0 2>"$folder/log" &
server=$!
for _ in $(seq 100); do
  url=$(grep -o 'http://[0-9.:]*' "$folder/log" || true)
  [[ -z $url ]] || break
  sleep 0.1
done
[[ -n $url ]] || { cat "$folder/log" >&2; give_up "the server did not start"; }
"$python" tests/clients/clients.py "$url" || give_up "a check of tests/clients/clients.py failed"
passed=1
python3 tests/clients/crowd.py "$url" "$server" 500 50 || give_up "a check of tests/clients/crowd.py failed"
passed=2
python3 tests/clients/mixed_load.py "$url" "$server" 0.2 || give_up "a check of tests/clients/mixed_load.py failed"
passed=3
python3 tests/clients/proxy.py "$program" "$folder/en-de" "$folder/lm" ||
  give_up "a check of tests/clients/proxy.py failed"
passed=4
"$python" tests/clients/clusters.py || give_up "a check of tests/clients/clusters.py failed"
passed=5
echo "$passed passed, 0 failed"
