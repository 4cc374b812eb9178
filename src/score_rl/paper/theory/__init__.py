"""The paper's theory, executable: pessimism, the decomposition, OPO, Theo-SCORE and the rate.

Every definition and statement of "False Correlation Reduction for Offline Reinforcement Learning"
that can be computed is computed here, on finite and linear MDPs, exactly where linear algebra allows.

    mdp, examples    finite MDPs, value functions, occupancy measures, Bellman operators
    data             data sets of N samples, the empirical model behind the empirical operator
    uncertainty      ξ-uncertainty quantifiers, each with the argument for its confidence
    pessimism        greedy and pessimistic value iteration, and the event over many drawn data sets
    decomposition    false correlation, intrinsic uncertainty, optimisation error
    linear           linear MDPs and the ridge form of the quantifier
    regularised      regularised MDPs and their optimal policies
    opo              OPO, Theo-SCORE and the policy improvement lemma
    rate             the theorem's schedules, its ζ and the bound
    theo_score       Theo-SCORE over K: three forms of it, and how fast the maximised one is
    lower_bound      what no algorithm can do better, on the smallest class of problems that shows it
    equivalence      Lemma "Equivalence between Theo-SCORE and OPO" under the linear parameterisation
    bridge           a critic ensemble against the exact epistemic error on a continuous task
    corrections      where the paper's statements and their proofs disagree, each decided by a number
    studies/         all of it by name, one module a study, with tables and figures

Importing this package costs nothing: JAX and matplotlib are loaded by the functions that need them.
"""
