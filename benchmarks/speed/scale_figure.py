"""The figure of how time and memory of an update grow."""

from pathlib import Path

from .machines import Machine


def figure_path(machine: Machine) -> str:
    """Where the figure lies below docs/."""
    return f"figures/speed/scale-{machine.name.lower().replace(' ', '-')}.svg"


def draw_scale(machine: Machine, path: Path) -> None:
    """Time and memory of an update as one thing grows, everything else at its base."""
    import matplotlib
    from matplotlib.figure import Figure

    matplotlib.rcParams["svg.hashsalt"] = "score-rl"  # the same figures give the same file
    part = machine.of("scale")
    base = {"runs": part["base_runs"], "critics": 5, "batch": 256, "width": 256}
    figure = Figure(figsize=(7.6, 4.0), layout="constrained")
    grid = figure.subplots(2, 4, squeeze=False)
    for column, name in enumerate(base):
        points = sorted(
            (p for p in part["points"] if all(p[other] == base[other] for other in base if other != name)),
            key=lambda p: p[name],
        )
        x = [p[name] for p in points]
        micros = [1e6 * p["runs"] / p["run_steps_per_second"] for p in points]
        mebibytes = [(p["bytes"] - p["data_bytes"]) / 2**20 for p in points]
        for axes, y, label in ((grid[0, column], micros, "µs per update"), (grid[1, column], mebibytes, "MiB")):
            axes.plot(x, y, marker="o", markersize=4, color="#0072b2")
            axes.set(ylim=(0, None), xlim=(0, None))
            axes.set_xlabel(name, fontsize=8.5)
            axes.set_ylabel(label if column == 0 else "", fontsize=8.5)
            axes.tick_params(labelsize=8)
            axes.locator_params(nbins=4)
            axes.spines[["top", "right"]].set_visible(False)
    rest = f"{part['base_runs']} run{'s' if part['base_runs'] > 1 else ''}, 5 critics, batch 256, width 256"
    figure.suptitle(f"SCORE on {machine.name}: one thing grows from {rest}", fontsize=9, x=0.01, ha="left")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None})
