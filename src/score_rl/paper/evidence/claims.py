"""The paper's headline claims, each with a rule that decides from stored numbers whether it holds here."""

from score_rl.paper.evidence.method_claims import FEWEST, all_aggregates, first_overall, low_and_medium
from score_rl.paper.evidence.speed_claim import SPEEDUP, speed
from score_rl.paper.evidence.sweep_claims import alike, beta, critics, decay
from score_rl.paper.evidence.verdicts import Claim
from score_rl.paper.experiments.curves import EVALUATIONS

LATE = f"by the mean of each run's last {EVALUATIONS} evaluations"

CLAIMS = (
    Claim(
        "SCORE is first overall",
        "Compared are means over the data sets that SCORE and another of the paper's methods both finished with 1 M "
        f"updates, if SCORE has all 15 and they share {FEWEST} or more. SCORE has its common setting; what it has with "
        "settings chosen from a grid stands beside it and decides nothing, as in the next two. The claim does not hold "
        "if one is higher with an interval wholly above SCORE's; else it is open until all nine others have finished "
        "on all 15. Then it holds if SCORE's is the highest, and in part if not.",
        first_overall,
    ),
    Claim(
        "SCORE is best in all four aggregates",
        "Median, interquartile mean, mean and gap to 100 of those of the paper's methods that finished on all 15 with "
        "1 M updates. It does not hold if one of them is better in one aggregate with an interval wholly beyond "
        "SCORE's, and holds in part if one is better in value alone; else it is open until all nine have finished.",
        all_aggregates,
    ),
    Claim(
        "SCORE is strongest on data of low and medium quality",
        "The rule of the first claim on random, medium-replay and medium (nine sets). The lead on medium-expert and "
        "expert (six) stands beside it and does not count: in the paper's own table SCORE's lead over MOPO, MOReL and "
        "BEAR is larger there.",
        low_and_medium,
    ),
    Claim(
        "SCORE is 3.1 times as fast as PBRL (PBRL-prior here)",
        f"It holds if SCORE is {SPEEDUP} times as fast or more on every machine that has timed one run of both, a GPU "
        "among them; it does not if SCORE is nowhere faster; in part otherwise.",
        speed,
    ),
    Claim(
        "γ_bc = 0.96 collapses late on narrow data",
        "Narrow data are those of one policy or two: medium, expert, medium-expert. In a sweep, on medium data, 0.96 "
        f"is compared with 0.98, {LATE}: yes if its interval lies wholly below, no if its mean is not lower, else "
        "half. Of trainings with 1 M updates, by data set and β: a run has collapsed if its last five evaluations are "
        "on the mean below half of its best one; yes if all with 0.96 did and none with 0.98, no if none with 0.96 "
        "did, else half. It holds if all answers are yes, and does not if all are no.",
        decay,
    ),
    Claim(
        "M = 3 is unstable, M = 5 is enough",
        f"Two questions on each data set, {LATE}. Three are unstable if their interval over seeds is wider than those "
        "of 5, 7 and 9 and their mean below that of 5. Five are enough if no larger number has an interval wholly "
        "above theirs. It holds if all answers are yes, does not if all are no.",
        critics,
    ),
    Claim(
        "β = 2.0 is over-pessimistic",
        f"On each data set the Q target must be negative and the interval of the score, {LATE}, wholly below that of "
        "β = 0.2. It holds if that is so on all, does not if on none.",
        beta,
    ),
    Claim(
        "β = 0.1, 0.2 and 0.5 work alike",
        f"On each data set the intervals of the three scores, {LATE}, must overlap, each with each. It holds if they "
        "do on all, does not if on none.",
        alike,
    ),
)
