"""The pool: a folder of fleets in which every run is trained once, however many experiments need it.

A fleet is an ordinary experiment folder. What is finished is used, what was interrupted is resumed, what is missing
is trained in as few compiled programs as its settings allow.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from score_rl.errors import Stopped
from score_rl.paper.experiments.plan import FILES, Wanted, data_identity, run_key
from score_rl.run.launch import resume, train
from score_rl.run.machines import Machines
from score_rl.store.folder import Folder


class StoredRun(NamedTuple):
    """Where a run lies."""

    folder: Path
    run: str
    ended: bool  # with its fleet: finished or diverged


class Block(NamedTuple):
    """Data sets × settings × seeds that train together."""

    datasets: tuple[str, ...]
    variants: tuple[Mapping[str, Any], ...]
    seeds: tuple[int, ...]
    runs: tuple[Wanted, ...]

    @property
    def name(self) -> str:
        text = "|".join(sorted(run.key() for run in self.runs))
        return f"{self.runs[0].algorithm}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"


def stored_runs(pool: Path) -> dict[str, StoredRun]:
    """The runs of the pool by their key; one that ended goes before one that did not."""
    found: dict[str, StoredRun] = {}
    for path in sorted(pool.glob("*/experiment.json")):
        folder = Folder.open(path.parent)
        record = folder.experiment()
        ended = folder.status().state == "finished"
        request = record.request
        plan = [request.steps, request.eval_every, request.eval_episodes, request.log_every, request.environment]
        identities = {
            name: f"file|{facts.checksum}" if Path(asked).suffix in FILES else data_identity(asked, request.transitions)
            for asked, (name, facts) in zip(request.datasets, record.datasets.items(), strict=True)
        }
        for run in record.runs:
            key = run_key(run.algorithm, identities[run.dataset], run.config, run.seed, plan)
            if key not in found or ended:
                found[key] = StoredRun(path.parent, run.id, ended)
    return found


def blocks(wanted: Sequence[Wanted]) -> Iterator[Block]:
    """As few as possible: equal shapes together, and within a shape whatever is a product."""
    shapes: dict[tuple[Any, ...], list[Wanted]] = {}
    for run in wanted:
        shapes.setdefault(run.shape, []).append(run)
    for runs in shapes.values():
        places: dict[tuple[tuple[str, Any], ...], dict[str, list[int]]] = {}
        for run in runs:
            places.setdefault(run.settings, {}).setdefault(run.dataset, []).append(run.seed)
        alike: dict[tuple[tuple[str, tuple[int, ...]], ...], list[tuple[tuple[str, Any], ...]]] = {}
        for settings, where in places.items():
            alike.setdefault(tuple((d, tuple(sorted(s))) for d, s in where.items()), []).append(settings)
        for placed, group in alike.items():
            by_seeds: dict[tuple[int, ...], list[str]] = {}
            for dataset, seeds in placed:
                by_seeds.setdefault(seeds, []).append(dataset)
            for common, datasets in by_seeds.items():
                mine = [r for r in runs if r.settings in group and r.dataset in datasets and r.seed in common]
                yield Block(tuple(datasets), tuple(dict(settings) for settings in group), common, tuple(mine))


def ready(
    pool: Path, wanted: Sequence[Wanted], *, quiet: bool, say: Any, on: Machines | None = None
) -> dict[str, StoredRun]:
    """All of these runs, by key, trained to their end."""
    wanted = list({run.key(): run for run in wanted}.values())
    keys = {run.key() for run in wanted}
    stored = stored_runs(pool)
    there = sum(key in stored and stored[key].ended for key in keys)
    if there:
        say(f"{there} of {len(keys)} runs are there already.")
    if there == len(keys):
        return stored
    try:
        for folder in dict.fromkeys(stored[key].folder for key in keys if key in stored and not stored[key].ended):
            say(f"Going on with {folder} ...")
            resume(folder, tensorboard=False, quiet=quiet, on=on)
        missing = list(blocks([run for run in wanted if run.key() not in stored]))
        for number, block in enumerate(missing):
            first = block.runs[0]
            what = f"{len(block.runs)} runs of {first.algorithm} for {first.steps:,} updates"
            say(f"Fleet {number + 1} of {len(missing)}: {what} ({pool / block.name})")
            train_block(block, pool / block.name, quiet=quiet, on=on)
    except Stopped as stopped:
        said = str(stopped).partition(";")[0]
        raise Stopped(f"{said}; call the same command again to go on.") from None
    return stored_runs(pool)


def train_block(block: Block, out: Path, *, quiet: bool, on: Machines | None = None) -> None:
    first = block.runs[0]
    train(
        list(block.datasets),
        algorithm=first.algorithm,
        seeds=block.seeds,
        variants=_told_apart(block.variants),
        config={"normalise_states": first.config.normalise_states} | _shared(block.variants),  # on any data
        steps=first.steps,
        eval_every=first.eval_every,
        eval_episodes=first.eval_episodes,
        log_every=first.log_every,
        transitions=first.transitions,
        environment=first.environment,
        out=out,
        tensorboard=False,
        quiet=quiet,
        on=on,
    )


def _shared(variants: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What all of them set alike."""
    first = variants[0]
    return {name: value for name, value in first.items() if all(v.get(name, _MISSING) == value for v in variants)}


def _told_apart(variants: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """What is left of each, so that runs are named by what tells them apart."""
    shared = _shared(variants)
    return [{name: value for name, value in variant.items() if name not in shared} for variant in variants]


_MISSING = object()
