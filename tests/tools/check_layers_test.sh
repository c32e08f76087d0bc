#!/usr/bin/env bash
# Proves that tools/check_layers accepts a clean tree and catches each kind of violation.
set -euo pipefail
check_layers=$(realpath "$(dirname "${BASH_SOURCE[0]}")/../../tools/check_layers")
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
failures=0

# A tree that keeps every rule.
clean_tree() {
  rm -rf "${root:?}/heddle" "$root/corpora" "$root/tests" "$root/docs"
  mkdir -p "$root"/heddle/{base,tensor,kernels/cpu,ops,io,text,nn,train,cli} "$root/tests/ops" "$root/docs"
  printf '// Errors.\n#pragma once\n#include <fmt/format.h>\n' >"$root/heddle/base/error.h"
  printf '// Types.\n#pragma once\n#include "heddle/base/error.h"\n' >"$root/heddle/tensor/dtype.h"
  printf '// A tensor.\n#pragma once\n' >"$root/heddle/tensor/tensor.h"
  printf '// A kernel.\n#include "heddle/tensor/dtype.h"\n#include <hwy/highway.h>\n' \
    >"$root/heddle/kernels/cpu/softmax.cc"
  printf '// An op.\n#pragma once\n#include "heddle/tensor/tensor.h"\n' >"$root/heddle/ops/softmax.h"
  printf '// A command.\n#include <CLI/CLI.hpp>\n' >"$root/heddle/cli/command_line.cc"
  printf '// A test.\n#include <gtest/gtest.h>\n#include "heddle/ops/softmax.h"\n' \
    >"$root/tests/ops/softmax_test.cc"
  printf '# The design\n\n%s\n' "$(printf '→%.0s' {1..120})" >"$root/docs/design.md"
}

accepts() {  # what is proved
  local output
  if ! output=$("$check_layers" "$root" 2>&1); then
    echo "FAIL: $1: $output"
    failures=$((failures + 1))
  fi
}

# The file gets the text; the checker must exit 1, name the file and say the words. Then all is clean again.
rejects() {  # file, text (printf format), words expected
  local output status=0
  mkdir -p "$root/$(dirname "$1")"
  # shellcheck disable=SC2059
  printf "$2" >"$root/$1"
  output=$("$check_layers" "$root" 2>&1) || status=$?
  if ((status != 1)) || [[ $output != *"$1:"*"$3"* ]]; then
    echo "FAIL: $1 should be refused with '$3'; exit $status, output: $output"
    failures=$((failures + 1))
  fi
  clean_tree
}

clean_tree
accepts "a clean tree passes"
rejects heddle/tensor/x.cc '// X.\n#include "heddle/ops/softmax.h"\n' "tensor may not include ops"
rejects heddle/tensor/x.cc '// X.\n#  include "heddle/ops/softmax.h"\n' "tensor may not include ops"
rejects heddle/ops/x.cc '// X.\n#include "heddle/io/safetensors.h"\n' "ops may not include io"
rejects heddle/text/x.cc '// X.\n#include "heddle/nn/linear.h"\n' "text may not include nn"
rejects heddle/io/x.cc '// X.\n#include "heddle/text/tokenizer.h"\n' "io may not include text"
rejects heddle/data/x.cc '// X.\n#include "corpora/phrasebook.h"\n' "data may not include corpora"
rejects corpora/x.cc '// X.\n#include "heddle/text/tokenizer.h"\n' "corpora may not include text"
rejects heddle/nn/x.cc '// X.\n#include "heddle/data/batcher.h"\n' "nn may not include data"
rejects heddle/train/x.cc '// X.\n#include "heddle/bench/case.h"\n' "train may not include bench"
rejects heddle/extra/x.cc '// X.\n#include "heddle/base/error.h"\n' "is no layer"
rejects heddle/kernels/x.h '// X.\n#pragma once\n#include "heddle/tensor/tensor.h"\n' "kernels see"
rejects heddle/tensor/rows.h '// X.\n#pragma once\n#include "heddle/tensor/tensor.h"\n' "kernels include"
rejects heddle/ops/x.cc '// X.\n#include "tests/support/case.h"\n' "may not include tests"
rejects heddle/ops/x.cc '// X.\n#include <hwy/highway.h>\n' "hwy"
rejects heddle/kernels/cpu/x.cc '// X.\n#include <oneapi/dnnl/dnnl.hpp>\n' "unknown header"
rejects heddle/io/x.cc '// X.\n#include <nlohmann/json.hpp>\n' "nlohmann"
rejects heddle/base/json/json.h '// X.\n#pragma once\n#include <nlohmann/json.hpp>\n' "nlohmann"
rejects heddle/data/x.cc '// X.\n#include <sentencepiece_processor.h>\n' "sentencepiece"
rejects heddle/train/x.cc '// X.\n#include <CLI/CLI.hpp>\n' "CLI11"
rejects heddle/ops/x.cc '// X.\n#include <unicode/uchar.h>\n' "ICU"
rejects heddle/ops/x.cc '// X.\n#include <gtest/gtest.h>\n' "gtest"
rejects heddle/ops/x.cc '// X.\n#include <eigen3/Eigen/Dense>\n' "unknown header"
rejects heddle/ops/x.cc '// X.\n#include "softmax.h"\n' "from the root"
rejects heddle/ops/x.h '// X.\nint x();\n' "#pragma once is missing"
rejects heddle/ops/x.cc '#include "heddle/ops/softmax.h"\n' "first line"
rejects tests/ops/x_test.cc "// X.\n$(printf '%.0s\\n' {1..500})" "501 lines"
printf '// X.\n%s' "$(printf '%.0s\n' {1..499})" >"$root/tests/ops/x_test.cc"
accepts "a file of 500 lines passes"

for number in {1..30}; do printf '// X.\n' >"$root/heddle/train/$number.cc"; done
accepts "a folder of 30 files passes"
output=$(printf '// X.\n' >"$root/heddle/train/31.cc" && "$check_layers" "$root" 2>&1) || true
[[ $output == *"heddle/train:1: the folder has more than 30"* ]] ||
  { echo "FAIL: a folder of 31 files should be refused: $output"; failures=$((failures + 1)); }
clean_tree

rejects docs/decisions.md "# X\n$(printf 'x%.0s' {1..121})\n" "121 characters"
rejects docs/design.md "$(printf 'word\\n%.0s' {1..2501})" "2501 words"
printf 'word\n%.0s' {1..2500} >"$root/docs/design.md"
accepts "a page of 2,500 words passes"
printf 'word\n%.0s' {1..2501} >"$root/docs/decisions.md"
accepts "another page may have more"

status=0
"$check_layers" "$root/heddle/ops" >/dev/null 2>&1 || status=$?
((status == 2)) || { echo "FAIL: a folder without code should exit 2, was $status"; failures=$((failures + 1)); }

((failures == 0)) && echo "check_layers: every violation is caught"
exit $((failures > 0))
