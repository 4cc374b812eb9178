#!/bin/sh
# The five ablations and four sweeps on two replicas of hopper, 5 seeds, 300,000 updates: 220 runs in 9 compiled
# programs, 66 million run-steps. Stop it at any time; called again it goes on.
#
#   benchmarks/training/experiments_gpu.sh [OUT]          OUT is experiments unless given
#   SEEDS="0 1 2" benchmarks/training/experiments_gpu.sh  fewer seeds first; the others can follow
#   STEPS=100000 benchmarks/training/experiments_gpu.sh   another length
set -eu
SCORE=${SCORE:-score}
exec $SCORE experiment run \
  ablation-bc ablation-pessimism sweep-beta sweep-decay sweep-alpha \
  ablation-penalty sweep-critics ablation-uncertainty ablation-constraint \
  --scale day --datasets hopper-medium hopper-medium-replay \
  ${SEEDS:+--seeds $SEEDS} ${STEPS:+--steps $STEPS} --out "${1:-experiments}"
