"""How fast the package is, beside PyTorch and d3rlpy, and the tables of speeds in the documents.

python -m benchmarks.speed                    measure (`--help` lists the parts)
python -m benchmarks.speed.tables             put the stored figures into the documents
python -m benchmarks.speed.critics            let kernels for critics take turns
python -m benchmarks.speed.worker_processes   let worker processes with and without JAX take turns
python -m benchmarks.speed.described_gpus     compile the kernels for GPUs that are not here
"""
