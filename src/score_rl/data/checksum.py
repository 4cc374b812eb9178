"""What a data set is identified by."""

import hashlib
from collections.abc import Mapping

import numpy as np


def content_checksum(arrays: Mapping[str, np.ndarray]) -> str:
    """SHA-256 over names, types, shapes and bytes, in the order given.

    Random keys of runs derive from it and stored experiments are compared by it. So the names are those of version
    0.1.0, which called trajectories "episodes".
    """
    digest = hashlib.sha256()
    for key, values in arrays.items():
        digest.update(f"{key} {values.dtype.newbyteorder('<').str} {values.shape}\n".encode())
        digest.update(np.ascontiguousarray(values).data)
    return digest.hexdigest()
