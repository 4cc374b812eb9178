"""Behaviour policies: the snapshots that ship with the package, those stored in D4RL files, and uniform actions."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any, Protocol, runtime_checkable

import numpy as np

from score_rl.errors import InputError

SHIPPED_LOG_STD = (-5.0, 2.0)
D4RL_LOG_STD = (-20.0, 2.0)
LAYERS = ("fc0", "fc1", "last_fc", "last_fc_log_std")  # as D4RL names them
SQUASH_EPSILON = 1e-6  # keeps the log-probability of a saturated action finite, as in D4RL's recordings


@runtime_checkable
class Policy(Protocol):
    """A stochastic policy. Its noise is drawn first and used later, so that every episode owns its noise."""

    @property
    def action_dim(self) -> int: ...

    def draw(self, generator: np.random.Generator, steps: int) -> np.ndarray:
        """Noise for `steps` steps of one episode, [steps, A] float32; drawing in parts gives the same numbers."""
        ...

    def act(self, observations: np.ndarray, noise: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Actions [n, A] and their log-probabilities [n], float32, for observations [n, S] float32."""
        ...


@dataclass(frozen=True)
class SquashedGaussian:
    """tanh(mean + exp(clip(log_std))·noise) on two hidden ReLU layers. Weights are [out, in], as D4RL stores them."""

    weights: Mapping[str, tuple[np.ndarray, np.ndarray]]  # layer name -> weight, bias
    log_std_clip: tuple[float, float]

    @property
    def action_dim(self) -> int:
        return int(self.weights["last_fc"][0].shape[0])

    @property
    def observation_dim(self) -> int:
        return int(self.weights["fc0"][0].shape[1])

    def draw(self, generator: np.random.Generator, steps: int) -> np.ndarray:
        return generator.standard_normal((steps, self.action_dim), dtype=np.float32)

    def act(self, observations: np.ndarray, noise: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        hidden = observations
        for layer in ("fc0", "fc1"):
            hidden = self._affine(layer, hidden)
            np.maximum(hidden, 0.0, out=hidden)
        log_std = np.clip(self._affine("last_fc_log_std", hidden), *self.log_std_clip)
        actions = np.tanh(self._affine("last_fc", hidden) + np.exp(log_std) * noise)
        normal = -0.5 * np.square(noise) - log_std - np.float32(0.5 * np.log(2.0 * np.pi))
        squash = np.log(1.0 - np.square(actions) + np.float32(SQUASH_EPSILON))
        return actions, (normal - squash).sum(axis=1)

    def _affine(self, layer: str, inputs: np.ndarray) -> np.ndarray:
        weight, bias = self.weights[layer]
        return inputs @ weight.T + bias


@dataclass(frozen=True)
class UniformActions:
    """Actions uniform in ±1: D4RL's random policy."""

    action_dim: int

    def draw(self, generator: np.random.Generator, steps: int) -> np.ndarray:
        return 2.0 * generator.random((steps, self.action_dim), dtype=np.float32) - 1.0

    def act(self, observations: np.ndarray, noise: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return noise, np.full(len(noise), -self.action_dim * np.log(2.0), dtype=np.float32)


def ladder_catalogue() -> dict[str, Any]:
    """For each task, the snapshots that make medium, expert and medium-replay, and their stochastic returns."""
    return dict(json.loads((_ladders() / "catalog.json").read_text(encoding="utf-8")))


def ladder_checksum(task: str) -> str:
    """SHA-256 of the file with the task's snapshots."""
    return hashlib.sha256((_ladders() / f"{task}.npz").read_bytes()).hexdigest()


def ladder_policies(task: str, steps: list[int]) -> list[SquashedGaussian]:
    """The snapshots taken after these many training steps."""
    with (
        resources.as_file(_ladders() / f"{task}.npz") as path,
        np.load(path, allow_pickle=False) as snapshots,
    ):
        return [_from_snapshot(snapshots, step) for step in steps]


def read_policy(file: Any, path: str) -> SquashedGaussian:
    """The behaviour policy in an open HDF5 file's `metadata/policy`."""
    if "metadata/policy" not in file:
        raise InputError(
            f"{path} holds no behaviour policy (no metadata/policy): use a medium or expert file, which do."
        )
    wanted = {layer: [f"{layer}/{part}" for part in ("weight", "bias")] for layer in LAYERS}
    missing = [key for keys in wanted.values() for key in keys if f"metadata/policy/{key}" not in file]
    if missing:
        raise InputError(
            f"{path}: metadata/policy lacks {', '.join(missing)}, but a policy needs all of {', '.join(LAYERS)}."
        )
    weights = {
        layer: tuple(_finite(file.array(f"metadata/policy/{key}"), path, key) for key in keys)
        for layer, keys in wanted.items()
    }
    clip_key = "metadata/policy/log_std_clip"
    clip = file.array(clip_key) if clip_key in file else np.asarray(D4RL_LOG_STD)
    if clip.shape != (2,) or not clip[0] < clip[1]:
        raise InputError(f"{path}: {clip_key} is {clip.tolist()}, but a low and a higher number are expected.")
    return SquashedGaussian(_checked_shapes(weights, path), (float(clip[0]), float(clip[1])))


def _finite(values: np.ndarray, path: str, key: str) -> np.ndarray:
    with np.errstate(over="ignore"):
        numbers = values.astype(np.float32)
    if not np.isfinite(numbers).all() or numbers.ndim != (2 if key.endswith("weight") else 1):
        raise InputError(
            f"{path}: metadata/policy/{key} has shape {numbers.shape} or values that are not finite: take another file."
        )
    return numbers


def write_policy(group: Any, policy: SquashedGaussian) -> None:
    """Store the policy as D4RL does, and the range that its log standard deviation is clipped to."""
    for layer, (weight, bias) in policy.weights.items():
        group[f"{layer}/weight"], group[f"{layer}/bias"] = weight, bias
    group["nonlinearity"], group["output_distribution"] = np.bytes_("relu"), np.bytes_("tanh_gaussian")
    group["log_std_clip"] = np.asarray(policy.log_std_clip)


def _ladders() -> Any:
    return resources.files("score_rl.data.collection") / "ladders"


def _from_snapshot(snapshots: Any, step: int) -> SquashedGaussian:
    def layer(name: str) -> tuple[np.ndarray, np.ndarray]:
        kernel, bias = (snapshots[f"{step}/{name}_{part}"].astype(np.float32) for part in ("kernel", "bias"))
        return np.ascontiguousarray(kernel.T), bias

    weight, bias = layer("head")  # mean and log standard deviation, one above the other
    half = len(bias) // 2
    weights = {
        "fc0": layer("fc0"),
        "fc1": layer("fc1"),
        "last_fc": (weight[:half], bias[:half]),
        "last_fc_log_std": (weight[half:], bias[half:]),
    }
    return SquashedGaussian(weights, SHIPPED_LOG_STD)


def _checked_shapes(
    weights: Mapping[str, tuple[np.ndarray, ...]], path: str
) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """The weights. They are refused if a layer does not take what the one before it gives."""
    inputs = weights["fc0"][0].shape[-1] if weights["fc0"][0].ndim == 2 else -1
    outputs = {"last_fc_log_std": len(weights["last_fc"][1])}
    checked = {}
    for layer in LAYERS:
        weight, bias = weights[layer]
        expected = (outputs.get(layer, len(bias)), inputs)
        if weight.shape != expected or bias.shape != expected[:1]:
            raise InputError(
                f"{path}: metadata/policy/{layer} has weight {weight.shape} and bias {bias.shape}, "
                f"but {expected} and {expected[:1]} would fit the layers around it."
            )
        checked[layer] = (weight, bias)
        if layer in ("fc0", "fc1"):
            inputs = weight.shape[0]
    return checked
