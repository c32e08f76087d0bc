#!/usr/bin/env bash
# Fine-tuning a small BERT after masked-word pre-training on the same texts, from nothing, and by
# adapters, three seeds each.    usage: experiments/pretraining.sh sst2|banking77 DATA OUT [HEDDLE]
# DATA: ../shared/data/sst2 or ../shared/data/banking77. Finished runs are not run again.
set -euo pipefail
task=$1 data=$2 out=$3 heddle=${4:-$(dirname "$0")/../build/bin/heddle}
mkdir -p "$out"
case $task in
  sst2) column=sentence words=8000
    texts=(--data "$data/glue_train.tsv.gz")
    labelled=(--data "$data/glue_train.tsv.gz" --val-data "$data/glue_dev.tsv.gz") ;;
  banking77) column=text words=3000
    texts=(--data "$data/train.csv.gz")
    labelled=(--data "$data/train.csv.gz" --val-data "$data/test.csv.gz") ;;
  *) echo "pretraining.sh: sst2 or banking77, not '$task'" >&2; exit 2 ;;
esac
"$heddle" train --recipe bert-tiny-mlm "${texts[@]}" --text-key "$column" --vocab-size "$words" --out "$out/mlm"
for seed in 1 2 3; do
  run() { "$heddle" train --recipe "$task" "${labelled[@]}" --seed "$seed" "${@:2}" --out "$out/$1-$seed"; }
  run nothing --tokenizer "$out/mlm/best"
  run pretrained --from "$out/mlm/best"
  run lora --from "$out/mlm/best" --lora-rank 16 --lora-alpha 32 --learning-rate 0.002 \
    --lora-targets query,key,value,attention.output.dense,intermediate.dense,output.dense
done
"$heddle" compare "$out"/{nothing,pretrained,lora}-{1,2,3} --page "$out/compare.html"
