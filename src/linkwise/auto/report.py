"""What `Auto` tells: which constraints it doubts, what it chose, and why."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from linkwise.auto.task import misplaced
from linkwise.constraints.conflict import Suspect, make_suspects

if TYPE_CHECKING:
    from linkwise._types import Ints
    from linkwise.auto.clusters import Choice
    from linkwise.auto.survey import Found, Said
    from linkwise.constraints import Constraints


GUESS = 0.5  # probability of a number of clusters below which it is called a guess
N_SHOWN = 6  # kinds of experts that a report lists
COIN = float(np.log(0.5))  # log-likelihood of a constraint
CLOSE = 0.02  # log-likelihoods that differ by less are called equal


class Voice(NamedTuple):
    """One expert in the consensus."""

    start: str
    bases: tuple[str, ...]
    weight: float
    score: float  # log-likelihood of constraints held back; given the others, if none could be
    noise: float


@dataclass(frozen=True)
class AutoReport:
    """What was chosen, and why.

    Parameters
    ----------
    n_clusters : int
        Number of clusters.
    n_clusters_probability : dict of int to float
        How probable each number of clusters is that was considered.
    voices : tuple of Voice
        The experts, the heaviest first.
    score : float
        Mean log-likelihood of a constraint that was held back; 0 is best, -0.69 is a coin's.
    score_without : float
        The same for experts that were told no constraint.
    noise : float
        Expected share of wrong constraints.
    n_constraints, n_violated : int
        Pairs and labels, and how many of them the labels violate.
    n_held_back : int
        How many of them were held back in turn. If none could be, the score is that of each one
        given the others, which flatters.
    shares : dict of str to float
        How much each party was heard: experts that learn, those told nothing, other methods.
    """

    n_clusters: int
    n_clusters_probability: dict[int, float]
    voices: tuple[Voice, ...]
    score: float
    score_without: float
    noise: float
    n_constraints: int
    n_violated: int = 0
    n_held_back: int = 0
    shares: dict[str, float] = field(default_factory=dict)

    def summary(self) -> list[str]:
        """Return what was chosen, in one line or some."""
        lines = [f"{self.n_clusters} clusters ({self._why_so_many()})"]
        if self.n_constraints:
            s = "s" if self.n_constraints > 1 else ""
            how = "held back" if self.n_held_back else "given the others"
            lines += [
                f"{self.n_constraints} constraint{s}, {self.n_violated} violated, "
                f"about {self.noise:.1%} wrong",
                f"log-likelihood of a constraint {how}: {self.score:.3f} "
                f"(without constraints: {self.score_without:.3f}; a coin: {COIN:.3f}; best: 0)",
            ]
        if self.n_held_back:
            lines.append(self._verdict())
        return lines

    def _verdict(self) -> str:
        if self.score < COIN + CLOSE:
            return "nothing predicts them better than a coin: check them, or the features"
        if self.score > self.score_without + CLOSE:
            return "those told help to predict those held back"
        return "those told hardly help to predict those held back"

    def __str__(self) -> str:
        lines = self.summary()
        if len(self.shares) > 1:
            lines.append("heard: " + ", ".join(f"{n} {w:.0%}" for n, w in self.shares.items()))
        heard: dict[str, float] = defaultdict(float)
        for voice in self.voices:
            heard[f"{' + '.join(voice.bases)}, from {voice.start}"] += voice.weight
        first = sorted(heard, key=lambda name: -heard[name])[:N_SHOWN]
        lines.append(f"experts heard, the {len(first)} heaviest of {len(heard)} kinds:")
        lines += [f"  {heard[name]:6.1%}  {name}" for name in first]
        return "\n".join(lines)

    def _why_so_many(self) -> str:
        numbers = self.n_clusters_probability
        if len(numbers) < 2:
            return "given"
        share = numbers[self.n_clusters]
        why = f"chosen of {min(numbers)} to {max(numbers)}, probability {share:.0%}"
        if self.n_clusters == max(numbers):
            why += ": the most that was tried"
        elif share < GUESS:
            why += ": a guess; give the number if you know it"
        return why


def rank_suspects(constraints: Constraints, said: Said, noise: float) -> tuple[Suspect, ...]:
    """Return all constraints, the one most likely wrong first."""
    wrong = said.wrong(noise)
    # Equal probabilities: the less expected one first.
    order = np.lexsort((said.probability, -wrong))
    return make_suspects(constraints, order, probability=wrong[order])


def n_violated(constraints: Constraints, labels: Ints) -> int:
    """Return the number of pairs and labels that do not hold."""
    return int(constraints.is_violated(labels).sum()) + int(misplaced(constraints, labels)[1].sum())


def make_report(found: Found, choice: Choice, suspects: tuple[Suspect, ...]) -> AutoReport:
    """Return what was chosen, and why; how many constraints are violated is not known yet."""
    task, pool = found.task, found.pool
    voices = [
        Voice(c.name, c.expert.names, float(weight), float(score), c.noise)
        for c, weight, score in zip(
            pool.candidates, pool.consensus.weights, pool.scores, strict=True
        )
    ]
    numbers = zip(choice.numbers, choice.probability.tolist(), strict=True)
    return AutoReport(
        n_clusters=found.k,
        n_clusters_probability=dict(numbers),
        voices=tuple(sorted(voices, key=lambda voice: -voice.weight)),
        score=found.held_out().best_score() if task.is_told else 0.0,
        score_without=found.tested(pool.without).best_score() if task.is_told else 0.0,
        noise=float(np.mean([one.probability for one in suspects])) if suspects else 0.0,
        n_constraints=len(suspects),
        n_held_back=int(np.isfinite(pool.foretold).sum()),
        shares=pool.shares,
    )
