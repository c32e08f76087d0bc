#!/usr/bin/env bash
# Proves that tools/check_names accepts the words that are right and catches each kind of violation.
set -euo pipefail
check_names=$(realpath "$(dirname "${BASH_SOURCE[0]}")/../../tools/check_names")
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
failures=0

# A tree that keeps every rule.
clean_tree() {
  rm -rf "${root:?}/heddle" "$root/tests" "$root/docs"
  mkdir -p "$root"/heddle/{base,nn,text,cli/measure,cli/train,inspect} "$root/pages" "$root/tests/nn" "$root/docs"
  printf '// Rows of tokens.\nstruct TokenRows {\n  int first;\n};\nclass KvCache;\n' >"$root/heddle/nn/token_rows.h"
  printf '// tie_word_embeddings, "bad_words_ids", WordPiece, words of 32 bits.\n' >"$root/heddle/nn/keys.h"
  printf '// Words between spaces: word by word, in other words.\nstruct Flags {};\n' >"$root/heddle/cli/measure/align.cc"
  printf '// The same flags.\nstruct Flags {};\nstruct Regex::Impl {\n};\n' >"$root/heddle/cli/train/train.cc"
  printf '// Nats per token.\nint twice(int x) {\n  const int sum = x + x;\n  check(sum >= x);\n  return sum; // of a number, whatever it is\n}\n' >"$root/heddle/base/a.cc"
}

accepts() {  # what is proved
  local output
  if ! output=$("$check_names" "$root" 2>&1); then
    echo "FAIL: $1: $output"
    failures=$((failures + 1))
  fi
}

# The file gets the text; the checker must exit 1, name file and line and say what. Then all is clean again.
rejects() {  # file, line, text (printf format), what is expected
  local output status=0
  mkdir -p "$root/$(dirname "$1")"
  # shellcheck disable=SC2059
  printf "$3" >"$root/$1"
  output=$("$check_names" "$root" 2>&1) || status=$?
  if ((status != 1)) || [[ $output != *"$1:$2: "*"$4"* ]]; then
    echo "FAIL: $1 should be refused with '$4'; exit $status, output: $output"
    failures=$((failures + 1))
  fi
  clean_tree
}

clean_tree
accepts "a clean tree passes"

for text in 'masked words' 'a hidden word' 'MaskedWords' 'masked_words'; do
  rejects heddle/cli/x.cc 2 "// X.\n// $text\n" "masked token"
done
rejects heddle/cli/x.cc 2 '// X.\nsay("the next word");\n' "next token"
rejects pages/x.js 1 'label: "likeness of rows"\n' "cosine similarity"
rejects docs/x.md 1 '1.2 nats a token\n' "per token"
rejects heddle/cli/x.cc 2 '// X.\n"perplexity {:.3f} a word"\n' "per token" # the message names all three
rejects heddle/cli/x.cc 2 '// X.\nrows.query_places\n' "positions"
rejects heddle/cli/x.cc 2 '// X.\nt.piece(3)\n' "token"
rejects heddle/text/x.cc 2 '// X.\nint piece_id();\n' "token"
rejects heddle/nn/x.h 2 '// X.\n/// Words of a batch.\n' '"word" stands for a token'
rejects heddle/infer/decoding/generate.cc 2 '// X.\nfor (int word : ids) {}\n' '"word" stands for a token'
rejects heddle/nn/x.h 1 '// The pieces of a text.\n' '"piece" stands for a token'

rejects heddle/train/x.h 2 '// X.\nstruct TokenRows {\n};\n' "type TokenRows is also in heddle/nn/token_rows.h:2"
rejects heddle/train/x.cc 2 '// X.\nclass TokenRows : public Rows {\n};\n' "type TokenRows is also in"
rejects heddle/cli/x.cc 3 '// X.\n\nint twice(int x) {\n  const int sum = x + x;\n  check(sum >= x);\n  return sum;  // of a number, whatever it is\n}\n' \
  "twice is written again: it stands in heddle/base/a.cc:2"

if ((failures)); then exit 1; fi
echo "check_names: every kind of violation is caught"
