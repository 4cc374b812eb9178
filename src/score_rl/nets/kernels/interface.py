"""What every fast form of a network offers: whether it fits a network and a batch, and what it computes.

A form is a record of settings. `choice` builds the forms for a device, and finds the one that fits a network. All of
them can be differentiated once. Parameters come as one array for each layer, with a leading axis of members.
"""

from typing import Protocol, runtime_checkable

from jaxtyping import Array, Float, PRNGKeyArray

Weights = tuple[Float[Array, "*members _in _out"], ...]
Biases = tuple[Float[Array, "*members _out"], ...]
Statistics = tuple[Float[Array, "members rows"], Float[Array, "members rows"]]


@runtime_checkable
class CriticsForm(Protocol):
    """An ensemble of networks with one output each, on the same rows."""

    def fits(self, weights: Weights, rows: int) -> bool:
        """Whether this form can compute the network on so many rows, and is meant to."""

    def scalars(self, weights: Weights, biases: Biases, x: Float[Array, "rows inputs"]) -> Float[Array, "members rows"]:
        """Every member's only output on every row."""


@runtime_checkable
class ActorForm(Protocol):
    """One network with one output or several: an ensemble of one member."""

    def fits(self, weights: Weights, rows: int) -> bool:
        """Whether this form can compute the network on so many rows, and is meant to."""

    def vectors(self, weights: Weights, biases: Biases, x: Float[Array, "rows inputs"]) -> Float[Array, "rows outputs"]:
        """The only member's outputs on every row."""


@runtime_checkable
class PassesForm(Protocol):
    """Many passes with dropout through an ensemble, every row of a pass with masks of its own."""

    def fits(self, weights: Weights) -> bool:
        """Whether this form can compute the ensemble."""

    def statistics(
        self,
        weights: Weights,
        biases: Biases,
        hidden: Float[Array, "members rows width"],
        key: PRNGKeyArray,
        rate: Float[Array, ""] | float,
        passes: int,
    ) -> Statistics:
        """Mean and variance over the passes of every member's only output, from the first hidden layer on."""
