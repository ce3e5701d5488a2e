#!/usr/bin/env bash
# From a fresh clone to a trained, evaluated and exported T5: installs t2t, then types the commands a person would.
# Needs Python 3.11-3.13 and a package index; on 2 CPU cores 2-6 minutes to install and about 10 to run. Run it again
# and it goes on where it stopped.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
bash launch/setup.sh metrics
began=$SECONDS
export JAX_COMPILATION_CACHE_DIR="${JAX_COMPILATION_CACHE_DIR:-$PWD/.jax_cache}"

run() {
    printf '\n\033[1m$ %s\033[0m   (%d:%02d)\n' "$*" $(((SECONDS - began) / 60)) $(((SECONDS - began) % 60))
    PATH="$PWD/.venv/bin:$PATH" "$@"
}

tuned=runs/quickstart-finetune
run t2t train quickstart
run t2t train finetune/quickstart
run t2t eval $tuned --split test
run t2t export $tuned exported/quickstart --overwrite
head -qn 3 $tuned/eval_test/*/predictions.jsonl >$tuned/held_out.jsonl
run t2t generate exported/quickstart --input $tuned/held_out.jsonl --field input --max-tokens 8
run t2t report runs/quickstart $tuned

cat <<END

exported/quickstart is a Hugging Face directory. Took $(((SECONDS - began) / 60)) minutes. What to type next:
  source .venv/bin/activate
  echo "kind: Return a copy of the list." | t2t generate exported/quickstart
  t2t tasks pydocs_multitask                      what it has learned from
  t2t train quickstart --help                     every setting
  t2t train quickstart --name longer --train.steps 3000
  t2t train quickstart --name mine --data.files 'my/*.txt'
  tensorboard --logdir runs
END
