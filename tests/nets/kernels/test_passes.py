"""The kernels of many passes with dropout against plain NumPy with the same masks, in Pallas's interpreter."""

from operator import itemgetter
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import score_rl.nets.kernels.passes as kernels
from score_rl.nets.dropout import many_passes
from score_rl.nets.kernels.launching import ProgramShape
from score_rl.nets.kernels.passes import DropoutPasses, random_words
from score_rl.nets.perceptron import Perceptron
from score_rl.nets.precision import Arithmetic, arithmetic
from tests.nets.kernels.slopes import written_for_gpus

SMALL = ProgramShape(64, 4, 1, 6)  # six programs at once: the passes of a tile are shared
FORM = DropoutPasses(values=SMALL, slopes=SMALL, interpret=True)
CHOSEN = Arithmetic("bfloat16", passes=FORM, emulated=True)
MEMBERS = 2


@pytest.fixture
def unrounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same kernels without rounding: their algebra."""
    monkeypatch.setattr(kernels, "DTYPE", jnp.float32)


def critics(width: int, seed: int = 0) -> Perceptron:
    return Perceptron.init(jax.random.key(seed), (5, width, width, 1), members=MEMBERS)


def hidden_layer(rows: int, width: int, seed: int = 1) -> jax.Array:
    return jax.nn.relu(jax.random.normal(jax.random.key(seed), (MEMBERS, rows, width)))


def found(
    net: Perceptron, hidden: jax.Array, key: jax.Array, rate: float | jax.Array, passes: int, form: DropoutPasses = FORM
) -> tuple[jax.Array, jax.Array]:
    return form.statistics(net.weights, net.biases, hidden, key, rate, passes)


# -- transcribed from the papers, in float64 and unbounded integers ---------------------------------------------------


def philox(
    key: int, counter: tuple[np.ndarray | int, np.ndarray | int], rounds: int = 10
) -> tuple[np.ndarray, np.ndarray]:
    first, second = counter
    first, second = np.asarray(first, np.uint64), np.asarray(second, np.uint64)
    for _ in range(rounds):
        product = first * np.uint64(0xD256D193)
        first, second = product >> np.uint64(32) ^ np.uint64(key) ^ second, product & np.uint64(0xFFFFFFFF)
        key = (key + 0x9E3779B9) % 2**32
    return first, second


def masks(key: jax.Array, rate: float, members: int, rows: int, width: int, passes: int) -> np.ndarray:
    """[pass, layer, member, row, unit]: True where a unit is kept."""
    low, high = (int(word) for word in jax.random.key_data(key))
    quarter = width // 4
    place = np.arange(rows)[:, None] * quarter + np.arange(quarter)[None]
    kept = np.empty((passes, 2, members, rows, width), bool)
    for number in range(passes):
        for layer in range(2):
            for member in range(members):
                count = (high + (member * passes + number) * 2 + layer) % 2**32
                words = philox(low, (place, np.full_like(place, count)))
                bits = np.concatenate([half for word in words for half in (word & 0xFFFF, word >> 16)], axis=1)
                kept[number, layer, member] = bits < (1 - np.float32(rate)) * 2**16
    return kept


def expected(
    net: Perceptron, hidden: jax.Array, kept: np.ndarray, rate: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean, variance and the mean's slope by the hidden layer."""
    (w2, b2), (w3, b3) = (
        (np.asarray(w, np.float64), np.asarray(b, np.float64))
        for w, b in zip(net.weights[1:], net.biases[1:], strict=True)
    )
    exact, q, slopes = np.asarray(hidden, np.float64), [], []
    for below, above in kept:
        z = np.einsum("mri,mio->mro", below * exact / (1 - rate), w2) + b2[:, None]
        q.append(np.einsum("mri,mio->mro", above * np.maximum(z, 0) / (1 - rate), w3)[..., 0] + b3)
        delta = above * (z > 0) / (1 - rate) * w3[:, None, :, 0]
        slopes.append(below / (1 - rate) * np.einsum("mro,mio->mri", delta, w2))
    return np.mean(q, axis=0), np.var(q, axis=0, ddof=1), np.mean(slopes, axis=0)


# -- the generator ----------------------------------------------------------------------------------------------------

PUBLISHED = [  # counter, key, result: the known answers for philox2x32 with ten rounds that come with Random123
    ((0x00000000, 0x00000000), 0x00000000, (0xFF1DAE59, 0x6CD10DF2)),
    ((0xFFFFFFFF, 0xFFFFFFFF), 0xFFFFFFFF, (0x2C3F628B, 0xAB4FD7AD)),
    ((0x243F6A88, 0x85A308D3), 0x13198A2E, (0xDD7CE038, 0xF62A4C12)),
]


@pytest.mark.parametrize(("counter", "key", "result"), PUBLISHED)
def test_the_generator_gives_the_published_numbers(counter: tuple[int, int], key: int, result: tuple[int, int]) -> None:
    words = random_words(jnp.uint32(key), tuple(jnp.uint32(word) for word in counter), interpret=True)
    assert tuple(map(int, words)) == result
    assert tuple(map(int, philox(key, counter))) == result


@pytest.mark.parametrize("rate", [0.1, 0.37])
def test_units_are_dropped_at_the_rate_and_independently(rate: float) -> None:
    """Of a million decisions: rows, units, passes, layers, members and keys share nothing."""
    shape = (2, 96, 128, 20)  # members, rows, width, passes
    one, other = (masks(jax.random.key(seed), rate, *shape) for seed in (0, 1))

    def correlation(a: Any, b: Any) -> Any:
        return np.mean((a - (1 - rate)) * (b - (1 - rate))) / (rate * (1 - rate)) * np.sqrt(a.size)

    assert abs(one.mean() - (1 - rate)) < 4 * np.sqrt(rate * (1 - rate) / one.size)
    together = {"keys": correlation(one, other), "layers": correlation(one[:, 0], one[:, 1])}
    for axis, name in {0: "passes", 2: "members", 3: "rows", 4: "units"}.items():
        for apart in {1, 2, one.shape[axis] // 2, one.shape[axis] // 4} - {0, one.shape[axis]}:
            ahead, behind = (np.take(one, range(a, a + one.shape[axis] - apart), axis) for a in (0, apart))
            together[f"{name} {apart} apart"] = correlation(ahead, behind)
    assert all(abs(number) < 4 for number in together.values()), together


# -- the kernels ------------------------------------------------------------------------------------------------------

CASES = [  # width, rows, passes, rate
    (64, 64, 4, 0.1),
    (64, 100, 7, 0.3),  # the last tile is not full, passes cannot be shared equally
    (128, 130, 5, 0.1),
    (64, 1, 2, 0.0),
]


@pytest.mark.usefixtures("unrounded")
@pytest.mark.parametrize(("width", "rows", "passes", "rate"), CASES)
def test_in_float32_the_kernels_are_the_passes(width: int, rows: int, passes: int, rate: float) -> None:
    net, hidden, key = critics(width), hidden_layer(rows, width), jax.random.key(3)
    mean, variance, slope = expected(net, hidden, masks(key, rate, MEMBERS, rows, width, passes), rate)
    given_slope = jax.random.normal(jax.random.key(4), mean.shape)

    @jax.jit
    def all_of_it(hidden: Any, rate: float) -> Any:
        differentiated, _ = jax.vjp(lambda hidden: found(net, hidden, key, rate, passes), hidden)
        return found(net, hidden, key, rate, passes), differentiated

    @jax.jit
    def slope_of_it(hidden: Any, rate: float) -> Any:
        return jax.grad(lambda hidden: (given_slope * found(net, hidden, key, rate, passes)[0]).sum())(hidden)

    for one, other in all_of_it(hidden, jnp.float32(rate)):  # with and without a gradient
        np.testing.assert_allclose(one, mean, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(other, variance, rtol=1e-3, atol=1e-10)
    np.testing.assert_allclose(slope_of_it(hidden, jnp.float32(rate)), given_slope[..., None] * slope, atol=1e-6)


@pytest.mark.usefixtures("unrounded")
def test_a_variance_far_from_zero_is_not_lost() -> None:
    """Values of a thousand that differ by a hundredth."""
    net, key = critics(64), jax.random.key(3)
    net = Perceptron(net.weights, (*net.biases[:-1], net.biases[-1] + 1000))
    hidden = hidden_layer(64, 64)
    mean, variance, _ = expected(net, hidden, masks(key, 0.1, MEMBERS, 64, 64, 9), 0.1)
    means, variances = found(net, hidden, key, 0.1, 9)
    np.testing.assert_allclose(means, mean, rtol=1e-6)
    np.testing.assert_allclose(variances, variance, rtol=1e-3)


def test_rounding_costs_what_bfloat16_costs() -> None:
    net, hidden, key = critics(64), hidden_layer(64, 64), jax.random.key(3)
    mean, variance, slope = expected(net, hidden, masks(key, 0.1, MEMBERS, 64, 64, 6), 0.1)
    means, variances = found(net, hidden, key, 0.1, 6)
    assert 0 < np.abs(means - mean).max() < 4e-3
    np.testing.assert_allclose(variances, variance, rtol=0.2, atol=2e-5)
    slopes = jax.grad(lambda hidden: found(net, hidden, key, 0.1, 6)[0].sum())(hidden)
    assert np.linalg.norm(slopes - slope) < 0.02 * np.linalg.norm(slope)


def test_the_shape_of_the_work_changes_no_mask() -> None:
    net, hidden, key = critics(64), hidden_layer(100, 64), jax.random.key(3)
    shapes = [ProgramShape(64, 4, 1, 1), ProgramShape(64, 4, 1, 40), ProgramShape(128, 8, 1, 6)]
    results = [found(net, hidden, key, 0.2, 5, FORM._replace(values=shape)) for shape in shapes]
    for result in results[1:]:
        for one, other in zip(result, results[0], strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-7)


def test_a_fleet_draws_what_each_run_draws_alone() -> None:
    nets = jax.vmap(lambda key: Perceptron.init(key, (5, 64, 64, 1), members=MEMBERS))(
        jax.random.split(jax.random.key(0), 3)
    )
    hidden = jnp.stack([hidden_layer(70, 64, seed) for seed in range(3)])
    keys, rates = jax.random.split(jax.random.key(9), 3), jnp.asarray([0.1, 0.2, 0.3])

    def run(
        net: Perceptron, hidden: jax.Array, key: jax.Array, rate: jax.Array
    ) -> tuple[jax.Array, jax.Array, jax.Array]:
        slope = jax.grad(lambda hidden: found(net, hidden, key, rate, 5)[0].sum())(hidden)
        return *found(net, hidden, key, rate, 5), slope

    together = jax.jit(jax.vmap(run))(nets, hidden, keys, rates)
    for number in range(3):
        alone = jax.jit(run)(*jax.tree.map(itemgetter(number), (nets, hidden, keys, rates)))
        for one, other in zip(together, alone, strict=True):
            np.testing.assert_allclose(one[number], other, rtol=1e-5, atol=1e-7)


def test_mean_and_variance_are_those_of_the_compilers_passes() -> None:
    """Up to what two times 200 draws leave open."""
    net, hidden, passes = critics(64), hidden_layer(64, 64), 200
    theirs = many_passes(net, hidden, jax.random.key(5), 0.1, "row", passes)
    with arithmetic(CHOSEN):
        ours = many_passes(net, hidden, jax.random.key(5), 0.1, "row", passes)
    away = np.asarray(ours[0] - theirs[0]) / np.sqrt(np.asarray(ours[1] + theirs[1]) / passes)
    assert np.abs(away).max() < 4.5
    assert 0.85 < away.std() < 1.15
    assert abs(np.log(ours[1] / theirs[1]).mean()) < 4 * np.sqrt(4 / passes / ours[1].size)


# -- where they are used, and what they refuse ------------------------------------------------------------------------


def test_critics_use_them_where_they_are_chosen() -> None:
    net, hidden, key = critics(64), hidden_layer(10, 64), jax.random.key(3)
    with arithmetic(CHOSEN):
        chosen, of_a_pass = (many_passes(net, hidden, key, 0.1, masks, 3) for masks in ("row", "pass"))
    with arithmetic(CHOSEN._replace(passes=None)):
        plain, plain_of_a_pass = (many_passes(net, hidden, key, 0.1, masks, 3) for masks in ("row", "pass"))
    assert (chosen[0] == found(net, hidden, key, 0.1, 3)[0]).all()
    assert (chosen[0] != plain[0]).all()
    assert (of_a_pass[0] == plain_of_a_pass[0]).all()


def fits(*sizes: int, members: int | None = MEMBERS) -> bool:
    return DropoutPasses().fits(Perceptron.init(jax.random.key(0), sizes, members=members).weights)


def test_only_critics_of_their_shape() -> None:
    assert fits(5, 256, 256, 1)
    assert fits(5, 64, 64, 1)
    for sizes in ((5, 64, 128, 1), (5, 192, 192, 1), (5, 64, 64, 64, 1), (5, 64, 1), (5, 64, 64, 2)):
        assert not fits(*sizes), sizes
    assert not fits(5, 64, 64, 1, members=None)


def test_gradients_that_they_do_not_have_are_refused() -> None:
    net, hidden, key = critics(64), hidden_layer(10, 64), jax.random.key(3)
    with pytest.raises(NotImplementedError, match="parameters or the rate"):
        jax.grad(lambda net: found(net, hidden, key, 0.1, 3)[0].sum())(net)
    with pytest.raises(NotImplementedError, match="parameters or the rate"):
        jax.grad(lambda rate: found(net, hidden, key, rate, 3)[0].sum())(0.1)
    with pytest.raises(NotImplementedError, match="variance"):
        jax.grad(lambda hidden: found(net, hidden, key, 0.1, 3)[1].sum())(hidden)
    stopped = jax.grad(lambda hidden: jax.lax.stop_gradient(found(net, hidden, key, 0.1, 3)[1]).sum())(hidden)
    assert (stopped == 0).all()


def on_a_gpu(form: DropoutPasses, rows: int, width: int) -> Any:
    def both(net: Any, hidden: Any, words: Any, rate: float) -> Any:
        key = jax.random.wrap_key_data(words)
        return (
            found(net, hidden, key, rate, 100, form),
            jax.grad(lambda hidden: found(net, hidden, key, rate, 100, form)[0].sum())(hidden),
        )

    shapes = jax.eval_shape(
        lambda: (critics(width), hidden_layer(rows, width), jnp.zeros(2, jnp.uint32), jnp.zeros(()))
    )
    fleet = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct((2, *leaf.shape), leaf.dtype), shapes)
    return written_for_gpus(jax.vmap(both), *fleet)


@pytest.mark.filterwarnings("ignore:The Pallas Triton backend is deprecated:DeprecationWarning")  # jax 0.11
@pytest.mark.parametrize(("rows", "width"), [(2_560, 256), (256, 128), (100, 64)])
def test_they_can_be_lowered_for_gpus(rows: int, width: int) -> None:
    """As far as a machine without one can tell."""
    assert on_a_gpu(DropoutPasses(runs=2), rows, width).count("triton") == 2


@pytest.mark.skipif(jax.default_backend() != "gpu", reason="needs a GPU")
@pytest.mark.parametrize("width", [64, 128, 256])
def test_on_a_gpu_they_compute_what_the_interpreter_does(width: int) -> None:
    net, hidden, key = critics(width), hidden_layer(300, width), jax.random.key(3)

    def both(form: Any) -> Any:
        def mean(hidden: Any) -> Any:
            return found(net, hidden, key, 0.1, 21, form)[0]

        return *found(net, hidden, key, 0.1, 21, form), jax.grad(lambda hidden: mean(hidden).sum())(hidden)

    for one, other in zip(jax.jit(lambda: both(DropoutPasses()))(), jax.jit(lambda: both(FORM))(), strict=True):
        assert jnp.linalg.norm(one - other) < 5e-3 * jnp.linalg.norm(other)


def test_no_program_asks_how_many_there_are() -> None:
    """On a device the axes of a grid are folded into three, so it would be told something else."""
    net, hidden, key = critics(64), hidden_layer(10, 64), jax.random.key(3)
    written = str(jax.make_jaxpr(lambda hidden: found(net, hidden, key, 0.1, 3))(hidden))
    assert "program_id" in written
    assert "num_programs" not in written
