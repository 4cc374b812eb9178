#!/bin/sh
# The figures of docs/performance.md that need a GPU and many cores, in pieces that fit a short rental; merged into OUT.
#
#   benchmarks/speed/gpu.sh OUT STEP...            OUT is a JSON file, say benchmarks/results/speed/h200.json
#
#   critics      the two kernels for many rows, alone and in CQL's and PBRL's updates   2 minutes
#   score        SCORE fleets of 1, 5, 15 and 75 runs beside PyTorch (if installed)     4 minutes
#   overlap      15 runs of each task with and without evaluation, 100,000 updates      3 minutes
#   evaluation   what judging costs                                                     1 minute
#   stretch      75 runs with evaluation, 5 minutes of training                         6 minutes
#   methods      every method, alone and as a fleet of 5                                6 minutes
#   scale        runs, critics, batch and width                                         4 minutes
#   versions     0.1.0 and this code in turns; BEFORE names a checkout of 0.1.0         4 minutes
#   workers      processes that play episodes, with and without JAX                     4 minutes
#
# Figures are stored as they come; a step that is cut off loses only what it was at. TRIAL=1 makes all of it tiny.
set -eu
[ $# -ge 2 ] || { sed -n '2,/^set/p' "$0" | sed '/^set/d; s/^# \{0,1\}//'; exit 2; }
out=$1
shift
PYTHONPATH=$(cd "$(dirname "$0")/../.." && pwd)${PYTHONPATH:+:$PYTHONPATH}  # of this checkout
export PYTHONPATH
failed=0
fail() { echo "FAILED: $*" >&2 && failed=1; }  # the other steps are still worth their time
speed() { "${PYTHON:-python}" -m benchmarks.speed --out "$out" "$@" || fail "benchmarks.speed $*"; }
critics() { "${PYTHON:-python}" -m benchmarks.speed.critics --out "$out" "$@" || fail "benchmarks.speed.critics $*"; }
versions() { "${PYTHON:-python}" -m benchmarks.speed.versions --called 0.1.0 --out "$out" "$@" || fail "versions $*"; }
workers() { "${PYTHON:-python}" -m benchmarks.speed.worker_processes --out "$out" "$@" || fail "worker_processes $*"; }
ways="layers streamed streamed:stored=True streamed:sum_outputs=128,sums=64/8/3/264"
runs="1 5 15 75" updates=100000 often=10000 minutes=5 small="" short="" few=""
[ -z "${TRIAL:-}" ] || {
  runs=1 updates=200 often=100 minutes=0.1 small="--transitions 2000 --seeds 1" short="--seconds 0.2 --rounds 1"
  few="--methods bc --sizes 1"
}
for step in "$@"; do
  case $step in
    critics)
      if [ "${TRIAL:-}" ]; then
        critics --ways $ways --shapes 2/2/130 --hidden 64 64 64 --calls 1 --rounds 1
      else
        critics --ways $ways streamed:down=128/8/1/132 streamed:down=64/4/2/132 --shapes 9/2/7936 --trace --limit 60
        critics --ways $ways --shapes 2/10/5120 2/500/256 --limit 60
        critics --shapes --methods cql:9 pbrl-prior:2 sac-n:2 --rounds 3 --limit 60
      fi ;;
    score) speed --what score --runs $runs --limit 240 $short ;;
    overlap)
      for task in halfcheetah hopper walker2d; do
        speed --what overlap --datasets "replica:$task-medium" "replica:$task-medium-expert" "replica:$task-expert" \
          --limit 60 --rounds 1 --updates $updates --eval-every $((often / 2)) $small
      done ;;
    evaluation) speed --what evaluation --limit 60 $small ;;
    stretch)
      data=""
      for task in halfcheetah hopper walker2d; do
        for kind in random medium medium-replay medium-expert expert; do data="$data replica:$task-$kind"; done
      done
      speed --what stretch --datasets $data --eval-every $often --minutes $minutes --limit 400 $small ;;
    methods) speed --what methods --limit 340 ${short:---seconds 2 --rounds 2} $few ;;
    scale) speed --what scale --base-runs ${TRIAL:-15} --limit 240 $short ;;
    versions) versions --before "${BEFORE:?is a checkout of 0.1.0: git worktree add ../before 2a3adbc}" \
      ${TRIAL:+--fleets bc:1 --rounds 1 --seconds 0.2} ;;
    workers) workers --policies ${TRIAL:-1 5} --rounds ${TRIAL:-3} ${TRIAL:+--tasks hopper --processes 1 --updates 20} ;;
    *) echo "no step is called $step" >&2 && exit 2 ;;
  esac
done
exit $failed
