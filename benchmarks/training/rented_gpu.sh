#!/bin/sh
# OGBench's table and the queue of the six sets side by side on a GPU that is rented for a short while, in commands that
# may not last longer than some minutes. Call it again and again: it goes on where it stopped. What was reached comes
# home in OUT, in a few files of limited size.
#
#   benchmarks/training/rented_gpu.sh SOURCES OUT MINUTES            SOURCES holds D4RL's three *_medium-v2.hdf5
#   PARCEL=FOLDER benchmarks/training/rented_gpu.sh ...              on another machine: with what came home from the last one
#   FAMILIES="cube-single" METHODS="score-grid score-chosen" SLOTS=4 AT_ONCE=3 LAST=1 benchmarks/training/rented_gpu.sh ...
#   TRIAL=1 benchmarks/training/rented_gpu.sh SOURCES OUT 2          all of it tiny, to see that it works
#
# LAST=1 begins no job of the queue that would be interrupted. Where the copy has no git, SCORE_RL_CODE_VERSION names the
# commit. Take what came home with `python -m benchmarks.training.queue.parcels unpack OUT`, and `make evidence`.
set -eu
[ $# -eq 3 ] || { sed -n '2,/^set/p' "$0" | sed '/^set/d; s/^# \{0,1\}//'; exit 2; }
sources=$1 out=$2 minutes=$3
root=$(cd "$(dirname "$0")/../.." && pwd)
PYTHONPATH=$root:$root/src${PYTHONPATH:+:$PYTHONPATH}
export PYTHONPATH
python=${PYTHON:-python} work=${WORK:-runs/rented}
families=${FAMILIES:-cube-single scene cube-double} methods=${METHODS:-iql rebrac bc fql score td3-bc}
small="" tiny=""
[ -z "${TRIAL:-}" ] || {
  small="--table $root/benchmarks/training/queue/trial.csv --transitions 2000 --evaluate-every 20 --evaluation-episodes 1"
  small="$small --fresh-episodes 2"
  tiny="--transitions 2000 --steps 40 --episodes 1 --evaluations 2 --hidden 32 32 --tasks 2 --grid-steps 20"
  families=cube-single methods="bc iql"
}
parcel() { "$python" -m benchmarks.training.queue.parcels "$@" --work "$work/queue" --results "$work/results"; }
mkdir -p "$work" "$out"
[ -z "${PARCEL:-}" ] || parcel unpack "$PARCEL" --ogbench "$work/ogbench/results"
# Who starts NVIDIA's service ends it: both use the one that is started here.
if command -v nvidia-cuda-mps-control > /dev/null; then nvidia-cuda-mps-control -d || true; fi  # fails if it runs
trap 'kill $ogbench $queue 2> /dev/null || true' INT TERM
"$python" -m benchmarks.training.ogbench --out "$work/ogbench" --seconds $((minutes * 60 + 30)) --families $families \
  --methods $methods --at-once "${AT_ONCE:-2}" $tiny > "$work/ogbench.txt" 2>&1 &
ogbench=$!
"$python" -m benchmarks.training.queue --minutes "$minutes" --sources "$sources" --work "$work/queue" \
  --results "$work/results" --slots "${SLOTS:-4}" --beside "$work/ogbench/trainings" ${LAST:+--only-what-ends} $small &
queue=$!
failed=0
wait $queue || wait $queue || failed=1  # again where a signal broke it off
wait $ogbench || wait $ogbench || failed=1
echo "OGBench:" && cat "$work/ogbench.txt"
parcel pack "$out" --ogbench "$work/ogbench" || failed=1
exit $failed
