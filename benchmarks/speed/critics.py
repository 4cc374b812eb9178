"""An ensemble of critics on many rows: the kernels in `nets/kernels` in turns.

Those of `layers.py` and `streamed.py`, or those of `passes.py` and what the compiler makes of many passes with dropout.

    python -m benchmarks.speed.critics       alone, the shapes of CQL, PBRL and SAC-N
    python -m benchmarks.speed.critics --ways layers streamed streamed:stored=True,sum_outputs=128,sums=64/8/3/264
    python -m benchmarks.speed.critics --shapes --methods cql:9 sac-n,critics=500:2    whole updates of 9 and of 2 runs
    python -m benchmarks.speed.critics --shapes --methods uwac:2 --ways compiler passes passes:values=64/4/1/264

A way is the name of a module and, after a colon, fields of its form that differ from the default; a `ProgramShape` is
written rows/warps/stages/programs. `compiler` stands for no kernels for passes. Alone, for which there are `layers`
and `streamed`, a call is the gradient by the parameters (`grad`), by the input (`input`) or the output (`value`), and
is compared with the plain network's in float32; with `--trace` the time of each kernel is listed too. Without a GPU the
kernels run in Pallas's interpreter, which tells whether they work and nothing about their speed.
"""

import ast
import gzip
import json
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import jax
import jax.numpy as jnp
import tyro
from jaxtyping import Array
from rich.console import Console

import score_rl.engine.program as fleet_program
from benchmarks.training.jobs import method_and_settings
from score_rl.nets.kernels.fused import Fused
from score_rl.nets.kernels.launching import ProgramShape
from score_rl.nets.kernels.layers import LayerByLayer
from score_rl.nets.kernels.passes import DropoutPasses
from score_rl.nets.kernels.streamed import Streamed
from score_rl.nets.perceptron import Perceptron
from score_rl.nets.precision import Arithmetic, arithmetic

from .timing import ACTION, OBSERVATION, Clock, Engine, Results, TakesTurns, in_turns, median

Mode = Literal["grad", "input", "value"]
OF_PASSES = ("passes", "compiler")  # ways to do many passes with dropout
CONSOLE = Console(highlight=False)


@dataclass(frozen=True)
class Arguments:
    ways: tuple[str, ...] = ("layers", "streamed")
    """What takes turns."""
    shapes: tuple[str, ...] = ("9/2/7936", "2/10/5120", "2/500/256")
    """runs/critics/rows of what is timed alone."""
    modes: tuple[Mode, ...] = ("grad", "value")
    """What is timed alone."""
    hidden: tuple[int, ...] = (256, 256, 256)
    """Hidden widths, alone."""
    methods: tuple[str, ...] = ()
    """METHOD:RUNS of which whole updates are timed; METHOD may have settings after it (sac-n,critics=500:2)."""
    rounds: int = 5
    """How often all take their turn; the median counts."""
    seconds: float = 1.0
    """About how long a turn of whole updates is."""
    calls: int = 200
    """Calls in a turn, alone."""
    trace: bool = False
    """List the time of each kernel, alone."""
    limit: float = 540.0
    """Seconds after which nothing new is begun."""
    out: Path | None = None
    """The JSON file to merge the figures into."""


def say(message: str) -> None:
    CONSOLE.print(message, soft_wrap=True)


def chosen(way: str, runs: int) -> Arithmetic:
    """The arithmetic that a way stands for."""
    interpret = jax.default_backend() != "gpu"
    name, _, fields = way.partition(":")
    if name not in ("layers", "streamed", *OF_PASSES):
        raise SystemExit(f"a way is layers, streamed, passes or compiler, not {name!r}")
    given: dict[str, Any] = {}
    for field in filter(None, fields.split(",")):
        key, _, value = field.partition("=")
        given[key] = ProgramShape(*map(int, value.split("/"))) if "/" in value else ast.literal_eval(value)
    if name in OF_PASSES:
        form = DropoutPasses(**{"runs": runs, "interpret": interpret} | given) if name == "passes" else None
        return Arithmetic("bfloat16", passes=form)
    layers = LayerByLayer.for_runs(runs)._replace(interpret=interpret, **(given if name == "layers" else {}))
    if name == "layers":
        return Arithmetic("bfloat16", (layers,))
    # Of few rows too, for which fleets do not choose them.
    return Arithmetic("bfloat16", (Streamed(**{"runs": runs, "least_rows": 1, "interpret": interpret} | given), layers))


class Alone:
    """Calls of the ensembles of a fleet, dozens in one program, one after the other."""

    TOGETHER = 20  # calls in a program

    def __init__(self, way: str, shape: str, mode: Mode, asked: Arguments) -> None:
        self.name = way
        runs, members, rows = map(int, shape.split("/"))
        sizes = (OBSERVATION + ACTION, *asked.hidden, 1)
        keys = jax.random.split(jax.random.key(0), runs)
        self._nets = jax.vmap(lambda key: Perceptron.init(key, sizes, members=members))(keys)
        self._x = jax.random.normal(jax.random.key(1), (runs, rows, sizes[0]))
        self._together = self.TOGETHER if jax.default_backend() == "gpu" else 1
        self._times = max(1, asked.calls // self._together)
        choice = chosen(way, runs)

        def result(net: Perceptron, x: Array, outputs: Callable[[Perceptron, Array], Array]) -> Any:
            if mode == "value":
                return outputs(net, x)
            return jax.grad(lambda net, x: (outputs(net, x) ** 2).sum(), argnums=int(mode == "input"))(net, x)

        def one(net: Perceptron, x: Array) -> Any:
            with arithmetic(choice):
                return result(net, x, Perceptron.scalars)

        def plain(net: Perceptron, x: Array) -> Any:
            return result(net, x, lambda net, x: net.members(x)[..., 0])

        def calls(nets: Perceptron, x: Array) -> Array:
            def step(x: Array, _: None) -> tuple[Array, None]:
                result = jax.vmap(one)(nets, x)  # the next call waits for every part of it
                return x + 1e-9 * sum(leaf.reshape(-1)[0] for leaf in jax.tree.leaves(result)), None

            return jax.lax.scan(step, x, length=self._together)[0]

        self._calls = jax.jit(calls).lower(self._nets, self._x).compile()
        jax.block_until_ready(self._calls(self._nets, self._x))
        both = (jax.jit(jax.vmap(each))(self._nets, self._x) for each in (one, plain))
        self.distance = max(
            float(jnp.linalg.norm(a - b) / jnp.linalg.norm(b)) for a, b in zip(*map(jax.tree.leaves, both), strict=True)
        )

    def turn(self) -> float:
        began = time.perf_counter()
        for _ in range(self._times):
            self._x = self._calls(self._nets, self._x)
        jax.block_until_ready(self._x)
        return self._times * self._together / (time.perf_counter() - began)

    def kernels(self) -> dict[str, float]:
        """Mean µs of each kernel in a call, by its name."""
        with tempfile.TemporaryDirectory() as folder:
            with jax.profiler.trace(folder):
                jax.block_until_ready(self._calls(self._nets, self._x))
            return {name: total / self._together for name, total in _durations(Path(folder)).items()}


def _durations(folder: Path) -> dict[str, float]:
    """µs by name of what ran on the GPU while it was traced."""
    totals: dict[str, float] = defaultdict(float)
    for path in folder.rglob("*.trace.json.gz"):
        events = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
        of_gpu = {e["pid"] for e in events if e.get("name") == "process_name" and "GPU" in e["args"]["name"]}
        streams = {
            (e["pid"], e["tid"])
            for e in events
            if e.get("name") == "thread_name" and e["pid"] in of_gpu and e["args"]["name"].startswith("Stream")
        }
        for event in events:
            if event.get("ph") == "X" and (event["pid"], event["tid"]) in streams:
                totals[event["name"]] += event["dur"]
    return totals


@contextmanager
def fleets_with(way: str) -> Iterator[None]:
    """Programs made inside take a way's kernels where the usual choice has kernels."""
    usual = fleet_program.arithmetic_for

    def instead(precision: Any, device: jax.Device, runs: int, units: str | None = None) -> Arithmetic:
        own = usual(precision, device, runs, units)
        if not own.kernel_runs:
            return own
        other = chosen(way, runs)
        if way.partition(":")[0] in OF_PASSES:
            return own._replace(passes=other.passes)
        fused = [form for form in own.critics if isinstance(form, Fused)]
        return own._replace(critics=(*fused, *other.critics))

    fleet_program.arithmetic_for = instead
    try:
        yield
    finally:
        fleet_program.arithmetic_for = usual


def _whole(way: str, method: str, runs: int, asked: Arguments) -> Engine:
    algorithm, settings = method_and_settings(method)
    with fleets_with(way):
        return Engine(algorithm, runs, asked.seconds, settings, name=way)


def _compare(
    title: str,
    makers: list[Callable[[], TakesTurns]],
    scale: int,
    unit: str,
    asked: Arguments,
    results: Results,
    clock: Clock,
) -> list[TakesTurns]:
    contestants: list[TakesTurns] = []
    for way, maker in zip(asked.ways, makers, strict=True):
        try:
            contestants.append(maker())
        except jax.errors.JaxRuntimeError as error:  # a shape that the device has no room for
            say(f"{title}: {way} cannot be compiled: {str(error)[:300]}")
    if not contestants:
        return []
    rates = in_turns(contestants, asked.rounds, clock.over)
    first = rates[0][1]
    distances = {one.name: one.distance for one in contestants if isinstance(one, Alone)}
    figures: dict[str, dict[str, Any]] = {}
    for name, of_rounds in rates:
        micros = 1e6 * scale / median(of_rounds)
        ratio = median([one / other for one, other in zip(of_rounds, first, strict=True)])
        figures[name] = {"microseconds": micros, "ratio": ratio, "rounds": of_rounds}
        said = f"{title}: {name}: {micros:,.1f} µs {unit}, {ratio:.2f}×"
        if name in distances:
            figures[name]["distance"] = distances[name]
            said += f", {distances[name]:.1%} from float32"
        say(said)
    results.keep("critics", figures, title)
    return contestants


def main(asked: Arguments) -> None:
    results, clock = Results(asked.out), Clock(asked.limit)
    device = jax.local_devices()[0]
    say(f"{device.device_kind} ({device.platform}), code {results.stamp()['code'][:12]}")
    for shape in asked.shapes:
        for mode in asked.modes:
            if clock.over():
                say(f"no time left for {shape} {mode}")
                continue
            makers: list[Callable[[], TakesTurns]] = [partial(Alone, way, shape, mode, asked) for way in asked.ways]
            for one in _compare(f"{shape} {mode}", makers, 1, "a call", asked, results, clock):
                if asked.trace and isinstance(one, Alone):
                    for name, micros in sorted(one.kernels().items(), key=lambda item: -item[1]):
                        say(f"    {one.name}: {micros:8.1f} µs {name[:90]}")
    for method in asked.methods:
        name, _, number = method.partition(":")
        if clock.over():
            say(f"no time left for {method}")
            continue
        makers = [partial(_whole, way, name, int(number or 1), asked) for way in asked.ways]
        _compare(f"{method} update", makers, int(number or 1), "an update of all", asked, results, clock)


if __name__ == "__main__":
    main(tyro.cli(Arguments, description=__doc__))
