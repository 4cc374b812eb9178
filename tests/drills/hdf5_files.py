"""Hostile HDF5 files: a seed corpus made here, and mutations of it. Every file follows from its seed."""

import json
import random
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np

Change = Callable[[Path, random.Random], None]
KEYS = ("observations", "actions", "rewards", "terminals", "timeouts", "next_observations", "trajectory_ends", "times")
METADATA = ("environment", "action_low", "action_high", "recipe", "observation_names", "action_names", "units")


def seed_file(path: Path, rng: random.Random) -> None:
    """A sound file, small, in one of the forms in which people write them."""
    generator = np.random.default_rng(rng.randrange(2**32))
    rows, width, actions = rng.choice([(24, 3, 2), (40, 11, 3), (12, 1, 1)])
    packing: dict[str, Any] = rng.choice(
        [{}, {"chunks": True}, {"compression": "gzip"}, {"compression": "gzip", "shuffle": True, "fletcher32": True}]
    )
    ends = np.arange(rows) % 6 == 5
    columns = {
        "observations": generator.normal(size=(rows, width)).astype(rng.choice(["f4", "f8"])),
        "actions": generator.uniform(-1, 1, (rows, actions)).astype("f4"),
        "rewards": generator.normal(size=rows).astype("f4"),
        "terminals": ends & (generator.random(rows) < 0.3),
        "timeouts": ends,
    }
    if rng.random() < 0.5:
        columns["next_observations"] = columns["observations"] + 0.1
    if rng.random() < 0.3:
        columns["trajectory_ends"] = ends
    if rng.random() < 0.3:
        columns["times"] = np.arange(rows)
    with h5py.File(path, "w", libver=rng.choice(["earliest", "latest"])) as file:
        for key, values in columns.items():
            file.create_dataset(key, data=values, **packing)
        if rng.random() < 0.7:
            metadata = file.create_group("metadata")
            metadata["environment"] = rng.choice(["none", "hopper" if width == 11 else "none"])
            metadata["action_low"], metadata["action_high"] = -np.ones(actions), np.ones(actions)
            metadata["recipe"] = json.dumps({"name": "drill"})
            metadata.create_dataset(
                "observation_names", data=[f"o{i}" for i in range(width)], dtype=h5py.string_dtype()
            )
        if rng.random() < 0.3:
            file["infos/qpos"] = np.zeros((rows, 2))


# -- changes -----------------------------------------------------------------------------------------------------------


def flip_bytes(path: Path, rng: random.Random) -> None:
    content = bytearray(path.read_bytes())
    near = rng.choice([len(content), min(2048, len(content))])  # structure lies mostly at the beginning
    for _ in range(rng.choice([1, 1, 2, 4, 16])):
        content[rng.randrange(near)] = rng.randrange(256)
    path.write_bytes(content)


def set_words(path: Path, rng: random.Random) -> None:
    """Lengths and addresses that are too large, or lead back."""
    content = bytearray(path.read_bytes())
    for _ in range(rng.choice([1, 2])):
        place = rng.randrange(max(1, len(content) // 8)) * 8
        word = rng.choice([0, 1, 2**31, 2**40, 2**63, 2**64 - 1, len(content), place, rng.randrange(len(content))])
        content[place : place + 8] = word.to_bytes(8, "little")
    path.write_bytes(content[: path.stat().st_size])


def cut(path: Path, rng: random.Random) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: rng.randrange(len(content))] + b"\0" * rng.choice([0, 0, 4096]))


def splice(path: Path, rng: random.Random) -> None:
    content = bytearray(path.read_bytes())
    length = rng.choice([16, 64, 256])
    start, to = rng.randrange(len(content)), rng.randrange(len(content))
    content[to : to + length] = content[start : start + length]
    path.write_bytes(content)


def replace_column(path: Path, rng: random.Random) -> None:
    odd: list[Any] = [
        np.zeros((3, 3, 3)), np.float64(1.0), np.full(24, np.nan), np.full((24, 3), np.inf), np.zeros(0),
        np.zeros((24, 0)), np.full(24, 1e35), np.full((24, 3), 1e300), np.full(24, 1e-45), np.zeros(24, "c16"),
        np.zeros(24, "S3"), np.zeros(24, [("a", "f4"), ("b", "i4")]), np.zeros(24, "f2"), np.zeros(24, "u8"),
        np.full(24, 2**63, "u8"), np.zeros((24, 1)), np.ones((24, 1)), np.arange(24.0), np.zeros(24, ">f8"),
        np.zeros((24, 2), "i1"), np.ones(24, bool), np.full(24, 0.5), np.zeros((24, 3), bool), np.zeros(24, "f16"),
        np.full(24, -1), h5py.Empty("f4"), "text", b"\xff\xfe",
    ]  # fmt: skip
    with h5py.File(path, "a") as file:
        key = rng.choice(KEYS)
        if key in file:
            del file[key]
        file[key] = rng.choice(odd)


def remove_something(path: Path, rng: random.Random) -> None:
    with h5py.File(path, "a") as file:
        names = [*file, *(f"metadata/{key}" for key in file.get("metadata", ()))]
        del file[rng.choice(names)]


def odd_metadata(path: Path, rng: random.Random) -> None:
    odd: list[Any] = [
        "", "hopper", "Pendulum-v1", "os:system-v0", "\x1b[2J", "halfcheetah", "nowhere-v3", h5py.Empty("S5"), 7, 1.5,
        np.zeros(3), np.full(2, np.nan), np.full(2, np.inf), [1.0, -1.0], np.zeros((2, 2)), np.bytes_(b"\xff\xfe"),
        "[" * 100_000, "{", '{"a": 1}', '{"x": {"y": []}}', np.zeros(2, "c8"), np.array([b"a", b"a"]), "none",
        np.full(2, 1e300), np.zeros(2, [("a", "f4")]), True,
    ]  # fmt: skip
    with h5py.File(path, "a") as file:
        key = f"metadata/{rng.choice(METADATA)}"
        if key in file:
            del file[key]
        file[key] = rng.choice(odd)


def add_link(path: Path, rng: random.Random) -> None:
    """Into the file, out of it, in circles, into nothing."""
    with h5py.File(path, "a") as file:
        key = rng.choice([*KEYS[:5], "metadata", "metadata/environment", "infos"])
        if key in file:
            file.move(key, "aside")
        targets = ["/aside", "/nowhere", f"/{key}", "/metadata/recipe", "/", "aside/aside", "."]
        kind = rng.choice(["soft", "soft", "external", "hard"])
        if kind == "soft":
            file[key] = h5py.SoftLink(rng.choice(targets))
        elif kind == "external":
            file[key] = h5py.ExternalLink(rng.choice(["/etc/passwd", path.name, "other.hdf5"]), "/rewards")
        else:
            file[key] = file["/"]


def leave_the_file(path: Path, rng: random.Random) -> None:
    """External storage and virtual data sets."""
    with h5py.File(path, "a") as file:
        key = rng.choice(KEYS[:5])
        shape, kind = (24,), "u1"
        if key in file:
            shape, kind = file[key].shape, file[key].dtype
            del file[key]
        if rng.random() < 0.5:
            file.create_dataset(key, shape, kind, external=[("/etc/passwd", 0, h5py.h5f.UNLIMITED)])
        else:
            layout = h5py.VirtualLayout(shape, kind)
            layout[...] = h5py.VirtualSource(rng.choice(["missing.hdf5", "."]), "rewards", shape)
            file.create_virtual_dataset(key, layout)


def never_written(path: Path, rng: random.Random) -> None:
    with h5py.File(path, "a") as file:
        key = rng.choice(KEYS[:5])
        shape: tuple[int, ...] = file[key].shape if key in file else (24,)
        if key in file:
            del file[key]
        if rng.random() < 0.3:  # 10.9 TiB
            shape = (1_500_000_000_000, *shape[1:])
        made = file.create_dataset(key, shape, "f8", chunks=tuple(min(8, length) for length in shape))
        if rng.random() < 0.5:
            made[:8] = 1.0


def packed_large(path: Path, rng: random.Random) -> None:
    """A gigabyte of zeros in a megabyte, wholly written."""
    with h5py.File(path, "a") as file:
        key = rng.choice(KEYS[:5])
        if key in file:
            del file[key]
        chunk = 2**24
        packed = file.create_dataset(key, (64 * chunk,), "u1", chunks=(chunk,), compression="gzip")
        zeros = zlib.compress(bytes(chunk))
        for number in range(64):
            packed.id.write_direct_chunk((number * chunk,), zeros)


def odd_names(path: Path, rng: random.Random) -> None:
    with h5py.File(path, "a") as file:
        group = file.require_group(rng.choice(["infos", "metadata", "other"]))
        group.id.links.create_soft(rng.choice([b"\xff\xfe", b"\x1b[31mred", "ü".encode("latin-1"), b"a\nb"]), b"/x")
        if rng.random() < 0.5 and "rewards" in file:
            del file["rewards"]


CHANGES: tuple[Change, ...] = (
    flip_bytes, flip_bytes, flip_bytes, set_words, set_words, cut, splice, replace_column, replace_column,
    remove_something, odd_metadata, odd_metadata, add_link, leave_the_file, never_written, odd_names,
)  # fmt: skip


def hostile_file(path: Path, seed: int) -> str:
    """The file of this seed, and what was done to it. Bytes are changed last, since no library writes after that."""
    rng = random.Random(seed)
    seed_file(path, rng)
    chosen = sorted(rng.sample(CHANGES, rng.choice([1, 1, 1, 2])), key=lambda change: change in CHANGES[:7])
    for change in chosen:
        try:
            change(path, rng)
        except (OSError, KeyError, ValueError, RuntimeError, TypeError, AttributeError) as error:
            return f"{change.__name__} could not be done ({error})"
    return " and ".join(change.__name__ for change in chosen)
