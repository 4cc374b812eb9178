"""A data set as a file in our format: read again, it is the same to the bit."""

import json
from pathlib import Path

import numpy as np

from score_rl.data.dataset import Dataset
from score_rl.data.sources.hdf5 import write_labels, write_recorded
from score_rl.disk import replacing


def save_dataset(dataset: Dataset, path: Path) -> None:
    """Write all rows, the marks, and what is known of the recording; whole or not at all."""
    import h5py

    names = ("observations", "actions", "rewards", "next_observations", "terminals", "timeouts")
    arrays = {name: getattr(dataset, name) for name in names}
    arrays["trajectory_ends"] = ~dataset.followed()
    with (
        replacing(path, sum(values.nbytes for values in arrays.values())) as temporary,
        h5py.File(temporary, "w") as file,
    ):
        for name, values in arrays.items():
            file[name] = np.asarray(values)
        metadata = file.create_group("metadata")
        metadata["environment"] = dataset.environment or "none"
        metadata["action_low"], metadata["action_high"] = dataset.action_low, dataset.action_high
        metadata["recipe"] = json.dumps({"kind": "saved", "source": dict(dataset.source)}, indent=1)
        write_labels(metadata, dataset.labels)
        write_recorded(metadata, dataset.recorded)
