"""What a model can be asked for, what each asking depends on, and where its draws end up.

In the draws table a row is named by question, model, purpose and draw:

- ``answer``: sampled answers, draws 0, 1, ..
- ``greedy``: the answer at temperature 0, draw 0; all second turns ask about this answer.
- ``verb``, ``verb_topk``: draw 0 at temperature 0 (the single-sample methods), draws 1, 2, .. at
  the study's temperature (the multi-sample ones).
- ``p_true``, ``p_true_cand``: votes at temperature 1, draws 0, 1, ..
- ``self_ask``, ``self_ask_cand``: draw 0 at temperature 0.
- ``selfcheck``: draw j says whether sample j supports the greedy answer, at temperature 0.
- ``p_true_pool``: draw j is this model's verdict on candidate j of the pool that all models of
  the study share; the column ``about`` holds the candidate.

Rows of second turns name the answer they ask about in the column ``about``.
"""

from msgspec import Struct

from calibrant.core.names import data_beside

POOL = "p_true_pool"
STATED_POOL = "self_ask_pool"
_ASKED_AS = {POOL: "p_true", STATED_POOL: "self_ask"}
TOP_TOKENS = 20


class Probe(Struct, frozen=True):
    """One kind of asking.

    Parameters
    ----------
    name
        Name of the probe; the confidence methods call their inputs the same.
    purpose
        Value of the column ``purpose``.
    prompt
        Which prompt it uses (a key of ``[prompts]`` in study.toml).
    turn
        1: needs the question alone. 2: asks about the greedy answer. 3: asks about the answers
        of all models of the study, so it waits for all of them.
    sampled
        Drawn many times at the study's temperature, or once at temperature 0.
    first_draw
        Draw index of its first row in the table.
    candidates
        Whether the prompt shows the distinct sampled answers.
    first_token
        Whether the score is read from the alternatives of the first token.
    per_sample
        Whether it is asked once for every sampled answer.
    """

    name: str
    purpose: str
    prompt: str
    turn: int
    sampled: bool = False
    first_draw: int = 0
    candidates: bool = False
    first_token: bool = False
    per_sample: bool = False

    @property
    def ledger_purpose(self) -> str:
        """Purpose in the ledger: what is asked about one's own answer serves the pool as well."""
        return _ASKED_AS.get(self.name, self.purpose)

    @property
    def needs(self) -> tuple[str, ...]:
        """Probes that must be there before this one can be asked."""
        if self.turn == 1:
            return ()
        return ("greedy", "samples") if self.candidates or self.per_sample else ("greedy",)


class ProbedInput(Struct, frozen=True):
    """What brings one kind of input.

    Parameters
    ----------
    probe
        The probe to ask.
    logprobs, top
        Whether its draws must carry token log-probs, and alternatives of the first token.
    repeated
        Whether one draw is not enough (votes).
    named_only
        Whether it costs so many calls that ``methods = "all"`` does not ask for it.
    judge_samples
        Whether sampled answers join the pool of candidates.
    kinds
        Kinds of question that can bring it; empty for all.
    """

    probe: str
    logprobs: bool = False
    top: bool = False
    repeated: bool = False
    named_only: bool = False
    judge_samples: bool = False
    kinds: tuple[str, ...] = ()


_TABLES = data_beside(__file__, "probes.toml")
PROBES: dict[str, Probe] = {
    name: Probe(**{"name": name, "purpose": name, "prompt": name, **given})
    for name, given in _TABLES["probes"].items()
}
NEEDS: dict[str, ProbedInput] = {
    name: ProbedInput(**given) for name, given in _TABLES["needs"].items()
}
PROMPT_NAMES = tuple(dict.fromkeys(probe.prompt for probe in PROBES.values()))
