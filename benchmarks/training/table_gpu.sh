#!/bin/sh
# A method on the paper's fifteen data sets: one fleet for each task, all three at once on one GPU. Stop it at any time
# (Ctrl-C); called again it goes on. Results are kept under OUT/results as each task ends.
#
#   benchmarks/training/table_gpu.sh SOURCES OUT METHOD [UPDATES [SEEDS]]   1000000 updates and 5 seeds unless given
#   ROWS=20000 EPISODES=2 benchmarks/training/table_gpu.sh ...              a trial: less data, fewer episodes at the end
#
# SOURCES holds D4RL's three *_medium-v2.hdf5, whole or as excerpts. Three processes use a GPU better than one after the
# other does if they may run side by side on it: start NVIDIA's service first, nvidia-cuda-mps-control -d
set -eu
sources=$1 out=$2 method=$3 updates=${4:-1000000} seeds=${5:-5}
mkdir -p "$out"
PYTHONPATH=$(cd "$(dirname "$0")/../.." && pwd)${PYTHONPATH:+:$PYTHONPATH}  # of this checkout
export PYTHONPATH
processes=""
trap 'kill $processes 2>/dev/null; wait' INT TERM
for task in walker2d halfcheetah hopper; do
  data=$task-random+$task-medium+$task-medium-replay+$task-medium-expert+$task-expert
  "${PYTHON:-python}" -m benchmarks.training.methods --sources "$sources" --out "$out" --checkpoint-minutes 10 \
    ${ROWS:+--transitions "$ROWS"} ${EPISODES:+--episodes "$EPISODES"} \
    --jobs "$method:$updates:$seeds:$data" >> "$out/$method-$task.log" 2>&1 &
  processes="$processes $!"
done
failed=0
for process in $processes; do wait "$process" || failed=1; done
for task in walker2d halfcheetah hopper; do echo "== $task" && tail -n 1 "$out/$method-$task.log"; done
exit $failed
