"""ProjectSession: the questions of the terminal, with the answers in a project of the page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import uuid4

from linkwise.active import Answer, Session
from linkwise.active.answers import as_pair, graded
from linkwise.app.conflicts import Evidence, verdicts
from linkwise.app.engine import answers_of
from linkwise.app.events import Event
from linkwise.app.solvers import replay

if TYPE_CHECKING:
    from linkwise.active.answers import Given
    from linkwise.app.events import Pair
    from linkwise.app.ledger import Facts
    from linkwise.app.project import Project

WORDS = {"unknown": "unsure"}  # what the page says


class ProjectSession(Session):
    """A session whose answers are events of a project; those of others count as well.

    Answers may contradict each other, as on the page: the newest is then ignored until somebody
    resolves the conflict there.

    Parameters
    ----------
    data : Prepared
        The samples.
    n_clusters : int or "auto"
        The number of clusters.
    project : Project
        The file of events.
    who : str, default="terminal"
        Whose answers these are.
    **settings
        Of `Session`.
    """

    def __init__(
        self,
        data: Any,
        n_clusters: int,
        *,
        project: Project,
        who: str = "terminal",
        **settings: Any,
    ) -> None:
        super().__init__(data, n_clusters, noisy=True, **settings)
        self._project, self._who = project, who
        self._is_clustered = False
        self._weigh()

    @property
    def facts(self) -> Facts:
        """What the project holds."""
        return self._project.ledger.facts

    def _weigh(self) -> None:
        """Take the answers that can hold together."""
        self._evidence = Evidence.of(verdicts(self._project.ledger.facts.answers))
        replay(self, answers_of(self._evidence))

    def next(self) -> Pair | None:
        """Return the pair to ask about, after what others have answered in the meantime."""
        if self._project.refresh():
            self._weigh()
        if not self._is_clustered or self.refit_is_due:  # at first under all answers, as the page
            self.refit()
            self._is_clustered = True
        flagged = self._project.ledger.facts.flagged
        for one in self.proposals(20):
            if self._evidence.is_open(one.i, one.j) and not {one.i, one.j} & flagged:
                return (one.i, one.j)
        return super().next()

    def answer(self, i: int, j: int, answer: Given) -> None:
        """Write an answer to the project."""
        pair, (word, belief) = as_pair(i, j, self.n_samples), graded(answer)
        event = Event("answer", str(uuid4()), self._who, *pair, WORDS.get(word, word), belief)
        self._project.append([event])
        self._weigh()

    def undo(self) -> Answer:
        """Take back the last answer of the terminal, and return it."""
        target = self._project.ledger.undoable(self._who)
        if target is None:
            raise ValueError("There is no answer to take back.")
        taken = self._project.ledger.action(target)[0]
        self._project.append([Event("undo", str(uuid4()), self._who, target=target)])
        self._weigh()
        back = {"unsure": "unknown"}.get(str(taken.relation), str(taken.relation))
        return Answer(*taken.pair, back)
