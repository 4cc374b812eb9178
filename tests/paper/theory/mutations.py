"""Deliberate errors in the theory's code, as data: each with the test that must catch it.

`python -m tests.paper.theory.mutations` tries all of them on a copy of the package and prints those that survive.
The tree itself is never touched. `OLD` must stand in the file exactly once.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

CHECKOUT = Path(__file__).parents[3]
THEORY = "src/score_rl/paper/theory"
TESTS = "tests/paper/theory"


class Mutation(NamedTuple):
    """One error: what it is, where, and the test that must fail on it."""

    error: str
    file: str  # in the theory's folder
    old: str
    new: str
    test: str  # in the tests' folder, as pytest names it


MUTATIONS = (
    # -- opo
    Mutation("the paper's α⁴ as α²", "opo.py", "lambda_k * alpha**4 /", "lambda_k * alpha**2 /",
             "test_opo.py::test_the_printed_constant_by_hand"),
    Mutation("Hoeffding's 8 as 2", "opo.py", "span**2 / (8.0 * eta**2)", "span**2 / (2.0 * eta**2)",
             "test_opo.py::test_the_lemma_by_hand_and_where_hoeffding_is_tight"),
    Mutation("floor 0 in pessimistic evaluation", "opo.py", "floor = mdp.gamma * weight * math.log",
             "floor = 0.0 * weight * math.log",
             "test_rate.py::test_an_instance_on_which_the_span_from_data_is_reached"),
    Mutation("sign of the KL in pessimistic evaluation", "opo.py", "-weight * kl_from_logs(log_policy",
             "weight * kl_from_logs(log_policy",
             "test_rate.py::test_the_pessimistic_estimator_has_the_regularised_value_where_data_say_everything"),
    Mutation("OPO forgets the behaviour policy", "opo.py", "q_k + eta_k * f_k + lambda_k * f_0", "q_k + eta_k * f_k",
             "test_opo.py::test_the_closed_form_maximises_the_objective_also_for_negative_eta"),
    Mutation("the remainder's arguments swapped", "opo.py", "(pi_k * (log_k - log_next)).sum(-1),",
             "(namespace(log_k).exp(log_next) * (log_next - log_k)).sum(-1),",
             "test_opo.py::test_policy_improvement_along_trajectories"),
    Mutation("the telescope's sign", "opo.py", "(pi_star * (log_next - log_k)).sum(-1),",
             "(pi_star * (log_k - log_next)).sum(-1),", "test_opo.py::test_policy_improvement_along_trajectories"),
    Mutation("Q_k discounted twice", "opo.py", "        q = action_value(mdp, true_value)",
             "        q = action_value(mdp, mdp.gamma * true_value)",
             "test_opo.py::test_exact_critics_are_the_regularised_action_values"),
    Mutation("an overflow is not refused", "opo.py", "if not np.isfinite(energy).all():", "if False:",
             "test_rate.py::test_an_eta_that_overflows_is_refused_or_said"),
    # -- rate
    Mutation("inverse without ζ", "rate.py", "        return math.sqrt(steps / z)\n    if schedule",
             "        return math.sqrt(steps)\n    if schedule", "test_rate.py::test_schedules_by_hand"),
    Mutation("corrected without c²", "rate.py", "return annealing_constant(alpha) * math.sqrt(steps / z)",
             "return math.sqrt(steps / z)",
             "test_rate.py::test_the_corrected_step_size_is_the_best_for_the_proof_and_gives_the_rate"),
    Mutation("the balanced constant", "rate.py", "steps / (8.0 * (1.0 - mdp.gamma) ** 3 * divergence)",
             "steps / (2.0 * (1.0 - mdp.gamma) ** 3 * divergence)", "test_rate.py::test_schedules_by_hand"),
    Mutation("the bound divided by 10", "rate.py",
             "return eta * divergence / steps + squares / (8.0 * eta * (1.0 - mdp.gamma)) + annealing",
             "return (eta * divergence / steps + squares / (8.0 * eta * (1.0 - mdp.gamma)) + annealing) / 10.0",
             "test_rate.py::test_the_bound_by_hand"),
    Mutation("no annealing term", "rate.py", "(8.0 * eta * (1.0 - mdp.gamma)) + annealing",
             "(8.0 * eta * (1.0 - mdp.gamma))", "test_rate.py::test_the_bound_by_hand"),
    Mutation("no span recursion", "rate.py", "span_f = spans_q[k] / eta + abs(1.0 - weight / eta) * span_f",
             "span_f = spans_q[k] / eta", "test_rate.py::test_the_bound_by_hand"),
    Mutation("Q from data bounded as exact Q", "rate.py",
             "divergence = support if from_data else min(span_f, support)", "divergence = min(span_f, support)",
             "test_rate.py::test_an_instance_on_which_the_span_from_data_is_reached"),
    Mutation("the same, on drawn data", "rate.py",
             "divergence = support if from_data else min(span_f, support)", "divergence = min(span_f, support)",
             "test_rate.py::test_drawn_instances_on_which_the_bound_for_exact_values_fails_on_data"),
    Mutation("the discount left out of the reach below zero", "rate.py", "(1.0 + gamma * weight * divergence)",
             "(1.0 + weight * divergence)", "test_rate.py::test_an_instance_on_which_the_span_from_data_is_reached"),
    Mutation("widths without the KL's range", "rate.py", "(1.0 + weight * support) / (1.0 - gamma))",
             "1.0 / (1.0 - gamma))", "test_rate.py::test_widths_reach_as_far_as_the_penalty"),
    Mutation("ζ without the square", "rate.py", "(1.0 + alpha**4 / (1.0 - alpha) ** 4) ** 2",
             "(1.0 + alpha**4 / (1.0 - alpha) ** 4)", "test_rate.py::test_constants_by_hand"),
    Mutation("(1-α)⁻⁴ as (1-α)⁻¹ in ζ", "rate.py", "alpha**4 / (1.0 - alpha) ** 4) ** 2",
             "alpha**4 / (1.0 - alpha)) ** 2", "test_rate.py::test_constants_by_hand"),
    Mutation("the average gap counts one iteration less", "rate.py", "gap[:k].mean() for", "gap[: k - 1].sum() / k for",
             "test_rate.py::test_the_gap_is_under_the_bound_and_falls_like_one_over_root_k"),
    # -- regularised
    Mutation("KL by clamping", "regularised.py", "    p = xp.exp(log_p)\n",
             "    p = xp.exp(log_p)\n    log_q = xp.maximum(log_q, -690.7)\n",
             "test_opo.py::test_a_divergence_from_a_policy_that_underflows"),
    Mutation("KL backwards", "regularised.py", "return kl_from_logs(log_probabilities(p), log_probabilities(q))",
             "return kl_from_logs(log_probabilities(q), log_probabilities(p))",
             "test_opo.py::test_zeros_that_are_meant"),
    Mutation("sign of the regulariser", "regularised.py", "- weight * kl(pi, pi_0)", "+ weight * kl(pi, pi_0)",
             "test_decomposition.py::test_no_policy_beats_the_regularised_optimum"),
    # -- uncertainty
    Mutation("event at 100 U", "uncertainty.py", "abs(error) <= width + 1e-10", "abs(error) <= 100.0 * width + 1e-10",
             "test_uncertainty.py::test_the_event_is_exactly_that"),
    Mutation("one side of the event", "uncertainty.py", "(abs(error) <= width + 1e-10)", "(error <= width + 1e-10)",
             "test_uncertainty.py::test_the_event_is_exactly_that"),
    Mutation("value_range ignored", "uncertainty.py",
             "span = 1.0 / (1.0 - gamma) if value_range is None else value_range", "span = 1.0 / (1.0 - gamma)",
             "test_uncertainty.py::test_values_that_span_more_need_wider_bounds"),
    Mutation("no union over pairs", "uncertainty.py", "math.log(n_states * n_actions / check_confidence(xi))",
             "math.log(1.0 / check_confidence(xi))",
             "test_uncertainty.py::test_the_widths_are_those_of_the_docstring"),
    Mutation("no union over sets of states", "uncertainty.py", "+ n_states * math.log(2.0)", "",
             "test_uncertainty.py::test_the_widths_are_those_of_the_docstring"),
    Mutation("leave-one-out without its net", "uncertainty.py", " + xp.log(points)\n", "\n",
             "test_uncertainty.py::test_the_widths_are_those_of_the_docstring"),
    Mutation("the error of the empirical model with itself", "uncertainty.py",
             "return bellman_optimality(truth, q) - bellman_optimality(estimate, q)",
             "return bellman_optimality(estimate, q) - bellman_optimality(estimate, q)",
             "test_uncertainty.py::test_the_epistemic_error_by_hand"),
    # -- pessimism
    Mutation("bound 2 to 20", "pessimism.py", "return 2.0 * (visitation", "return 20.0 * (visitation",
             "test_pessimism.py::test_the_bound_by_hand"),
    Mutation("ι ≤ 20 U", "pessimism.py", "(iota - 2.0 * width).max()", "(iota - 20.0 * width).max()",
             "test_pessimism.py::test_what_is_judged_of_a_data_set_by_hand"),
    Mutation("optimism", "pessimism.py", "bellman_optimality(estimate, q) - width, 0.0)",
             "bellman_optimality(estimate, q) + width, 0.0)",
             "test_pessimism.py::test_fixed_points_of_the_empirical_and_the_pessimistic_operator"),
    Mutation("no clip of the pessimistic values", "pessimism.py", "penalty=width, floor=0.0)", "penalty=width)",
             "test_pessimism.py::test_fixed_points_of_the_empirical_and_the_pessimistic_operator"),
    # -- linear
    Mutation("event at 10 U", "linear.py", "event_holds(truth - fit.estimate, fit.width)",
             "event_holds(truth - fit.estimate, 10.0 * fit.width)",
             "test_linear.py::test_what_is_judged_of_a_data_set_with_a_width_that_is_too_small"),
    Mutation("bound divided by 4", "linear.py", "2.0 * (along_star * fit.width).sum()",
             "0.5 * (along_star * fit.width).sum()",
             "test_linear.py::test_what_is_judged_of_a_data_set_with_a_width_that_is_too_small"),
    Mutation("ridge without κ", "linear.py", "+ kappa * xp.eye(linear.dimension)", "+ 1e-3 * xp.eye(linear.dimension)",
             "test_linear.py::test_ridge_regression_sample_by_sample"),
    Mutation("the ridge's bias left out of the width", "linear.py",
             "+ math.sqrt(kappa * dimension) * v_max", "", "test_linear.py::test_the_width_is_the_docstrings"),
    # -- corrections
    Mutation("the constant of the step", "corrections.py", 'abs(excess("corrected")),', 'abs(excess("inverse")),',
             "test_corrections.py::test_every_correction_is_decided"),
    Mutation("the log bound times 9", "corrections.py", "np.maximum.accumulate(spans) / eta",
             "9.0 * np.maximum.accumulate(spans) / eta",
             "test_corrections.py::test_the_bound_on_the_log_ratio_is_reached_at_the_first_step"),
    Mutation("sign of λ_i in the corrected recursion", "corrections.py", "centred(q - weight * f)",
             "centred(q + weight * f)", "test_corrections.py::test_every_correction_is_decided"),
    Mutation("the corrected lemma without its curvature", "decomposition.py",
             "self.optimisation_error + self.curvature",
             "self.optimisation_error", "test_corrections.py::test_every_correction_is_decided"),
    # -- bridge
    Mutation("no penalty", "bridge.py", "- training.beta * critic_values(theta, s, a).std(0)", "",
             "test_bridge.py::test_training_against_an_independent_transcription"),
    Mutation("no annealing", "bridge.py", "first_weight * decay ** (t // training.d_bc)", "first_weight",
             "test_bridge.py::test_training_against_an_independent_transcription"),
    Mutation("actor by the mean", "bridge.py", "critic_values(theta, s, chosen).min(0)",
             "critic_values(theta, s, chosen).mean(0)",
             "test_bridge.py::test_training_against_an_independent_transcription"),
    Mutation("no βu in the error", "bridge.py", "- mean - training.beta * u)", "- mean)",
             "test_bridge.py::test_quality_by_its_definition"),
    Mutation("a target that all critics share", "bridge.py",
             "GAMMA * critic_values(target.theta, s_next, a_next)",
             "GAMMA * critic_values(target.theta, s_next, a_next).mean(0)[None]",
             "test_bridge.py::test_training_against_an_independent_transcription"),
    Mutation("targets that never move", "bridge.py", "x + training.tau * (y - x)", "x",
             "test_bridge.py::test_training_against_an_independent_transcription"),
    Mutation("Adam without correction of its bias", "bridge.py", "c1, c2 = 1 - b1**steps, 1 - b2**steps",
             "c1, c2 = 0.1 + 0.0 * b1**steps, 0.001 + 0.0 * b2**steps",
             "test_bridge.py::test_training_against_an_independent_transcription"),
    # -- decomposition, mdp, data
    Mutation("(i) without its minus", "decomposition.py", "        -(along_hat * iota).sum(),",
             "        (along_hat * iota).sum(),",
             "test_decomposition.py::test_the_terms_sum_to_the_suboptimality_for_any_estimate"),
    Mutation("(ii) along the learned policy", "decomposition.py",
             "        (along_star * iota).sum(),\n        (along_star.sum(-1) * gap)",
             "        (along_hat * iota).sum(),\n        (along_star.sum(-1) * gap)",
             "test_decomposition.py::test_the_terms_sum_to_the_suboptimality_for_any_estimate"),
    Mutation("curvature of the wrong sign", "decomposition.py", "        -weight * (states * kl_from_logs",
             "        weight * (states * kl_from_logs",
             "test_decomposition.py::test_the_regularised_terms_sum_with_the_curvature"),
    Mutation("occupancies that are not normalised", "mdp.py", "return (1.0 - model.gamma) * visitation",
             "return visitation", "test_mdp.py::test_occupancy_is_a_distribution_that_prices_rewards"),
    Mutation("an unseen pair invents a reward", "data.py", "xp.where(seen, reward, 0.0)", "reward",
             "test_uncertainty.py::test_the_epistemic_error_by_hand"),
    # -- equivalence
    Mutation("the centre of the lemma swapped", "equivalence.py",
             "(problem.eta_k * problem.phi_k + problem.lambda_k * problem.phi_0) / total",
             "(problem.lambda_k * problem.phi_k + problem.eta_k * problem.phi_0) / total",
             "test_equivalence.py::test_the_stationary_point_satisfies_the_lemma"),
    Mutation("second moments in place of the Fisher information", "equivalence.py",
             'return xp.einsum("s,sa,sad,sae->de", problem.states, pi, centred, centred)',
             'return xp.einsum("s,sa,sad,sae->de", problem.states, pi, problem.psi, problem.psi)',
             "test_equivalence.py::test_the_stationary_point_satisfies_the_lemma"),
    # -- what a study's own verdict must notice
    Mutation("a rate's bound that is far too small", "rate.py",
             "return eta * divergence / steps + squares / (8.0 * eta * (1.0 - mdp.gamma)) + annealing",
             "return 1e-4 * (eta * divergence / steps)",
             "test_studies.py::test_every_study_runs_and_writes_what_it_says[rate]"),
    Mutation("a remainder's bound that is far too small", "opo.py", "span**2 / (8.0 * eta**2)",
             "span**2 / (800.0 * eta**2)",
             "test_studies.py::test_every_study_runs_and_writes_what_it_says[improvement]"),
    Mutation("terms that do not sum", "decomposition.py", "        -(along_hat * iota).sum(),",
             "        (along_hat * iota).sum(),",
             "test_studies.py::test_every_study_runs_and_writes_what_it_says[decomposition]"),
    Mutation("a width without its logarithm", "uncertainty.py",
             "xp.sqrt(log / (2.0 * xp.maximum(visits, 1.0)))\n    return",
             "xp.sqrt(1e-4 / (2.0 * xp.maximum(visits, 1.0)))\n    return",
             "test_studies.py::test_every_study_runs_and_writes_what_it_says[coverage]"),
    Mutation("a lemma that does not hold", "equivalence.py", "np.linalg.solve(fisher(problem, phi), deterministic",
             "2.0 * np.linalg.solve(fisher(problem, phi), deterministic",
             "test_studies.py::test_every_study_runs_and_writes_what_it_says[equivalence]"),
    Mutation("a ridge width that is far too small", "linear.py", "width = multiple * norm",
             "width = 1e-3 * multiple * norm",
             "test_studies.py::test_every_study_runs_and_writes_what_it_says[linear]"),
    Mutation("a corrected statement that does not hold", "corrections.py", "centred(q - weight * f)",
             "centred(q - 0.9 * weight * f)",
             "test_studies.py::test_every_study_runs_and_writes_what_it_says[corrections]"),
    Mutation("terms that do not sum, at the green lights", "decomposition.py",
             "        (along_star.sum(-1) * gap).sum(),", "        0.9 * (along_star.sum(-1) * gap).sum(),",
             "test_studies.py::test_every_study_runs_and_writes_what_it_says[green-lights]"),
    Mutation("a bound on the maximised form that is too small", "theo_score.py", "        gaps[k] = gap\n",
             "        gaps[k] = 1e-3 * gap\n",
             "test_studies.py::test_every_study_runs_and_writes_what_it_says[theo-score]"),
    # -- what the printed statements say, and what is read off runs
    Mutation("a printed bound against twice the distance", "corrections.py", "float(spans.max()) / 2.0 - printed",
             "float(spans.max()) - printed",
             "test_corrections.py::test_what_is_printed_is_evaluated_as_it_is_printed"),
    Mutation("the printed telescope compared with nothing", "corrections.py",
             "(moving - kl(optima[0], here.pi_0)).max()", "moving.max()",
             "test_corrections.py::test_what_is_printed_is_evaluated_as_it_is_printed"),
    Mutation("the printed recursion without λ", "corrections.py", "centred(q + weight * f)", "centred(q)",
             "test_corrections.py::test_what_is_printed_is_evaluated_as_it_is_printed"),
    Mutation("the printed closed form without λ_1", "corrections.py", "np.abs(one * q[0] - truth[0])",
             "np.abs(q[0] - truth[0])",
             "test_corrections.py::test_what_is_printed_is_evaluated_as_it_is_printed"),
    Mutation("SubOptGap over the longest run", "rate.py", "gap[:k].min() for", "gap.min() for",
             "test_rate.py::test_every_run_is_read_at_its_own_end"),
    Mutation("the last policy of the longest run", "rate.py", "best - plain[k - 1] for", "best - plain[-1] for",
             "test_rate.py::test_every_run_is_read_at_its_own_end"),
    Mutation("spans that never grow", "rate.py", "abs(1.0 - weight / eta) * span_f", "(1.0 - weight / eta) * span_f",
             "test_rate.py::test_a_small_eta_lets_the_span_grow_by_hand"),
    Mutation("ε_Pess with one U", "rate.py", "np.array(2.0 * np.einsum", "np.array(1.0 * np.einsum",
             "test_rate.py::test_the_pessimistic_error_by_hand"),
    Mutation("λ taken as zero too early", "opo.py", "if weight < 1e-12:", "if weight < 1e-2:",
             "test_rate.py::test_optima_are_those_of_each_regularised_mdp"),
    Mutation("an explicit step of the implicit one's length", "equivalence.py", "direction / problem.eta_k",
             "direction / (problem.eta_k + problem.lambda_k)", "test_equivalence.py::test_both_steps_by_hand"),
    Mutation("no pull towards the behaviour policy", "equivalence.py", "- problem.lambda_k * pull", "- 0.0 * pull",
             "test_equivalence.py::test_gaussian_kl_is_the_cloning_loss"),
    Mutation("a multiple of what was never seen", "pessimism.py",
             "width = xp.where(estimate.visits > 0, scale * width, width)", "width = scale * width",
             "test_pessimism.py::test_a_multiple_of_the_width_leaves_what_was_never_seen_at_its_range"),
    Mutation("a ratio over pairs that were never seen", "pessimism.py",
             "return xp.where(visits > 0, abs(error) / width, 0.0).max()", "return (abs(error) / width).max()",
             "test_pessimism.py::test_a_multiple_of_the_width_leaves_what_was_never_seen_at_its_range"),
    Mutation("ridge values above V_max", "linear.py", "xp.clip(estimate(q) - scale * width, 0.0, linear.mdp.v_max)",
             "xp.maximum(estimate(q) - scale * width, 0.0)",
             "test_linear.py::test_values_stay_within_their_range_where_the_ridge_goes_beyond"),
    Mutation("the value's error against V", "bridge.py", "exact_action_value(truth, *query))",
             "np.interp(query[0], grid, truth))", "test_bridge.py::test_quality_by_its_definition"),
    Mutation("an avenue of less worth", "examples.py", "0.7 * gamma**lights", "0.65 * gamma**lights",
             "test_mdp.py::test_the_avenue_is_best_and_never_favoured_by_ties"),
    # -- Theo-SCORE and the lower bound
    Mutation("a gradient step of OPO's length", "theo_score.py", "return eta - lambdas", "return eta + 0.0 * lambdas",
             "test_theo_score.py::test_the_stepped_form_is_the_natural_gradient_of_the_objective"),
    Mutation("the maximised form keeps its first λ", "theo_score.py", "np.maximum(lambdas, SMALLEST)",
             "np.ones_like(lambdas)", "test_theo_score.py::test_the_runs_are_the_forms"),
    Mutation("a moving optimum that costs nothing", "theo_score.py",
             " + alpha**k * (1.0 - check_annealing(alpha)) * support / (1.0 - gamma)", "",
             "test_theo_score.py::test_the_bound_of_the_maximised_form_by_hand"),
    Mutation("a lower bound twice as high", "lower_bound.py", "return 0.5 * delta", "return delta",
             "test_theo_score.py::test_the_lower_bound_of_one_sample_by_hand"),
    Mutation("a pessimistic rule that is optimistic", "lower_bound.py", "> 0.5 + width", "> 0.5 - width",
             "test_theo_score.py::test_rules_and_their_losses_by_hand"),
    Mutation("ties to the risky action", "lower_bound.py", "np.where(2 * x == trials, 0.5,",
             "np.where(2 * x == trials, 1.0,",
             "test_theo_score.py::test_no_rule_beats_it_and_the_majority_attains_it"),
    Mutation("a study that takes (ii) for a lower bound", "pessimism.py", "penalty=width, floor=0.0)",
             "penalty=width + 0.5, floor=0.0)",
             "test_studies.py::test_every_study_runs_and_writes_what_it_says[irremovable]"),
)  # fmt: skip
SAMPLE = ("Hoeffding's 8 as 2", "event at 100 U")  # in the fast tests


class Copy:
    """A copy of what a mutation's test needs, in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        shutil.copytree(CHECKOUT / "src" / "score_rl", folder / "src" / "score_rl", ignore=_without_caches)
        shutil.copytree(CHECKOUT / TESTS, folder / TESTS, ignore=_without_caches)
        for package in ("tests", "tests/paper"):
            (folder / package / "__init__.py").touch()

    def passes(self, test: str) -> bool:
        """Whether a test passes in the copy; a test that cannot even be collected is an error of the list."""
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-x",
            "--noconftest",
            "-p",
            "no:cacheprovider",
            f"{TESTS}/{test}",
        ]
        paths = os.pathsep.join([str(self.folder / "src"), str(self.folder)])
        environment = os.environ | {"PYTHONPATH": paths, "XLA_FLAGS": "--xla_backend_optimization_level=0"}
        ended = subprocess.run(command, cwd=self.folder, env=environment, capture_output=True, text=True, check=False)
        if ended.returncode not in (0, 1):
            raise RuntimeError(f"{test} could not be run:\n{ended.stdout[-2000:]}{ended.stderr[-2000:]}")
        return ended.returncode == 0

    def catches(self, mutation: Mutation) -> bool:
        """Whether its test fails once the error is made. The file is restored afterwards."""
        path = self.folder / THEORY / mutation.file
        whole = path.read_text(encoding="utf-8")
        if whole.count(mutation.old) != 1:
            raise RuntimeError(
                f"{mutation.error}: {mutation.old!r} stands {whole.count(mutation.old)} times in {path}."
            )
        path.write_text(whole.replace(mutation.old, mutation.new), encoding="utf-8")
        try:
            return not self.passes(mutation.test)
        finally:
            path.write_text(whole, encoding="utf-8")


def _without_caches(folder: str, names: Sequence[str]) -> list[str]:
    return [name for name in names if name == "__pycache__"]


def survivors(mutations: Sequence[Mutation], folder: Path) -> list[str]:
    """The errors that no test notices, by name."""
    copy = Copy(folder)
    missed = []
    for number, mutation in enumerate(mutations, 1):
        caught = copy.catches(mutation)
        print(f"{number:3d} of {len(mutations)}  {'caught  ' if caught else 'SURVIVES'}  {mutation.error}", flush=True)
        if not caught:
            missed.append(mutation.error)
    return missed


if __name__ == "__main__":
    chosen = [m for m in MUTATIONS if not sys.argv[1:] or any(word in m.error for word in sys.argv[1:])]
    with tempfile.TemporaryDirectory() as scratch:
        missed = survivors(chosen, Path(scratch))
    print(f"{len(chosen) - len(missed)} of {len(chosen)} caught")
    sys.exit(bool(missed))
