"""What is run with the path of a file, an observation and nothing of JAX or score_rl: `python clean_process.py FILE`.

Prints JSON: what the file answers, and the seconds from the imported libraries to the first action.
"""

import json
import sys
import time
from typing import Any


class Blocked:
    """An importer that finds none of these."""

    NAMES = ("jax", "jaxlib", "equinox", "score_rl", "onnx", "mujoco")

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        if name.partition(".")[0] in self.NAMES:
            raise ImportError(f"{name} is blocked")


def main() -> None:
    sys.meta_path.insert(0, Blocked())
    import numpy as np

    file, reader = sys.argv[1:]
    observations = np.asarray(json.loads(sys.stdin.read()), np.float32)
    if file.endswith(".onnx"):
        import onnxruntime
    else:
        namespace: dict[str, Any] = {}
        with open(reader) as text:  # noqa: PTH123 - a copied file, as users have it
            exec(text.read(), namespace)
    took = []
    for _ in range(3):
        began = time.perf_counter()
        if file.endswith(".onnx"):
            session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
            names = [output.name for output in session.get_outputs()]
            answer = dict(zip(names, session.run(None, {"observations": observations[:1]}), strict=True))
        else:
            policy = namespace["Policy"](file)
            answer = policy(observations[:1])
        took.append(time.perf_counter() - began)
    if file.endswith(".onnx"):
        answer = dict(zip(names, session.run(None, {"observations": observations}), strict=True))
        about = json.loads(session.get_modelmeta().custom_metadata_map["score_rl"])
    else:
        answer, about = policy(observations), policy.about
    loaded = sorted({name.partition(".")[0] for name in sys.modules} & set(Blocked.NAMES))
    print(json.dumps({
        "answer": {name: value.tolist() for name, value in answer.items()},
        "about": about, "seconds": min(took), "loaded": loaded,
    }))  # fmt: skip


if __name__ == "__main__":
    main()
