"""Measure speed as ratios: `python -m benchmarks` rewrites the first part of RESULTS.md."""

import os

# before NumPy is imported: BLAS reads these once. Both sides of every comparison keep to one
# thread.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[_name] = "1"
