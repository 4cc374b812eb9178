#!/bin/sh
# Several methods on one GPU, each job a process of its own, all at once; each starts when its data are collected. Stop it
# at any time (Ctrl-C), or after SECONDS it stops by itself; called again it goes on. Results are kept under OUT/results as
# jobs end.
#
#   benchmarks/training/methods_gpu.sh SOURCES OUT SECONDS JOB...   jobs as in jobs.py: METHOD:UPDATES:SEEDS:DATA
#   benchmarks/training/methods_gpu.sh d4rl out 3000 cql:1000000:3:medium mopo:200000:2:hopper-medium
#   benchmarks/training/methods_gpu.sh ... cql:1000000:3:medium ~pbrl-prior:1000000:2:hopper-medium
#                                                                   with ~ a job takes what the others leave of the GPU
#   ROWS=20000 EPISODES=2 benchmarks/training/methods_gpu.sh ...    a trial: less data, fewer episodes at the end
#
# SOURCES holds D4RL's three *_medium-v2.hdf5, whole or as excerpts. NVIDIA's service that lets processes use a GPU at
# the same time, not in turns, is started where it is installed and does not run yet.
set -eu
[ $# -ge 4 ] || { sed -n '2,/^set/p' "$0" | sed '/^set/d; s/^# \{0,1\}//'; exit 2; }
sources=$1 out=$2 seconds=$3
shift 3
mkdir -p "$out"
PYTHONPATH=$(cd "$(dirname "$0")/../.." && pwd)${PYTHONPATH:+:$PYTHONPATH}  # of this checkout
export PYTHONPATH
processes="" number=0 failed=0
trap 'kill $processes 2>/dev/null; wait' INT TERM
if command -v nvidia-cuda-mps-control > /dev/null; then nvidia-cuda-mps-control -d || true; fi  # fails if it runs
began=$(date +%s)
for each in "$@"; do
  number=$((number + 1)) job=${each#\~} priority=0
  [ "$job" = "$each" ] || priority=1  # NVIDIA's service has two: normal and below
  # One after the other for data, since two jobs on the same data would both collect them; earlier jobs train meanwhile.
  "${PYTHON:-python}" -m benchmarks.training.methods --sources "$sources" --out "$out" ${ROWS:+--transitions "$ROWS"} \
    --collect --jobs "$job"
  left=$((seconds - $(date +%s) + began))
  [ "$left" -gt 0 ] || { echo "no time left for $job after collecting" > "$out/job-$number.log"; failed=1; continue; }
  CUDA_MPS_CLIENT_PRIORITY=$priority timeout -s TERM "$left" \
    "${PYTHON:-python}" -m benchmarks.training.methods --sources "$sources" --out "$out" --checkpoint-minutes 10 \
    ${ROWS:+--transitions "$ROWS"} ${EPISODES:+--episodes "$EPISODES"} --jobs "$job" >> "$out/job-$number.log" 2>&1 &
  processes="$processes $!"
done
for process in $processes; do wait "$process" || failed=1; done
number=0
for job in "$@"; do
  number=$((number + 1))
  echo "== $job" && tail -n 2 "$out/job-$number.log"
done
exit $failed
