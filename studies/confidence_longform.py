"""Long answers of the embedded model: claims and scores, docs/studies/confidence_longform.md."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence

import numpy as np
from benchmarks.harness import ROOT

from calibrant.answers.confidence.longform import (
    LongScore,
    claim_draws,
    score_long_answer,
    split_claims,
)
from calibrant.metrics import auroc, sem_ece
from calibrant.models.endpoints.embedded import EmbeddedClient
from calibrant.models.protocol import Completion, Message, Request

PAGE = ROOT / "docs" / "studies" / "confidence_longform.md"
MODEL = "smollm2-135m-instruct"
SAMPLES = 8
TOKENS = 96
SUBJECTS = (
    "Marie Curie",
    "the city of Paris",
    "the planet Mars",
    "the Amazon river",
    "William Shakespeare",
    "the human heart",
    "the Great Wall of China",
    "Albert Einstein",
    "the Pacific Ocean",
    "the country Japan",
)
JUDGE_WORD = "Is this statement true? A. True B. False"


async def ask(
    client: EmbeddedClient, text: str, *, n: int = 1, temperature: float = 0.0, tokens: int = TOKENS
) -> list[Completion]:
    """Return completions of one request."""
    request = Request(
        model=MODEL,
        messages=(Message("user", text),),
        n=n,
        temperature=temperature,
        max_tokens=tokens,
        logprobs=True,
        top_logprobs=20,
        seed=11 if temperature else None,
    )
    return list(await client.ask(request))


def true_share(completion: Completion) -> float | None:
    """Return P(True) among the listed first tokens that say A / True or B / False."""
    if not completion.logprobs:
        return None
    masses = {"a": 0.0, "b": 0.0}
    for token, logprob in completion.logprobs[0].top:
        word = token.strip(" .").lower()
        key = {"a": "a", "true": "a", "b": "b", "false": "b"}.get(word)
        if key:
            masses[key] += math.exp(logprob)
    total = masses["a"] + masses["b"]
    return masses["a"] / total if total else None


async def one_prompt(client: EmbeddedClient, subject: str) -> tuple[str, LongScore]:
    """Return the greedy answer about a subject and the scores of its claims."""
    prompt = f"Write four short sentences with facts about {subject}."
    [greedy] = await ask(client, prompt)
    samples = await ask(client, prompt, n=SAMPLES, temperature=1.0)
    beliefs: dict[str, float] = {}
    for claim in split_claims(greedy.text):
        [verdict] = await ask(
            client, f"Statement: {claim}.\n{JUDGE_WORD}\nReply with A or B.", tokens=1
        )
        belief = true_share(verdict)
        if belief is not None:
            beliefs[claim] = belief
    texts = [sample.text for sample in samples]
    return greedy.text, score_long_answer(greedy.text, texts, p_true=beliefs)


async def collect() -> dict[str, tuple[str, LongScore]]:
    """Ask about every subject."""
    client = EmbeddedClient(model=MODEL, parallel=SAMPLES)
    try:
        return {subject: await one_prompt(client, subject) for subject in SUBJECTS}
    finally:
        await client.close()


def page(found: dict[str, tuple[str, LongScore]]) -> Sequence[str]:
    """Return the lines of the page."""
    claims = [claim for _, score in found.values() for claim in score.claims]
    lines = [
        "# Long answers: a confidence for every claim",
        "",
        f"Written by `python -m studies confidence_longform`: {MODEL} answers "
        f"{len(found)} open prompts ('Write four short sentences with facts about ..'). "
        f"Each greedy answer is split into claims by rules ({len(claims)} claims). A claim's LUQ "
        f"score is its mean support by {SAMPLES} sampled answers, P(True) is the model's own "
        "verdict; its confidence is their mean, and that of an answer the mean over its claims.",
        "",
        "| prompt about | claims | confidence | weakest claim | its confidence |",
        "| --- | ---: | ---: | --- | ---: |",
    ]
    for subject, (_, score) in found.items():
        weakest = score.weakest
        name, value = (weakest.claim, weakest.confidence) if weakest else ("", math.nan)
        lines.append(
            f"| {subject} | {len(score.claims)} | {score.confidence:.2f} | {name} | {value:.2f} |"
        )
    lines += ["", "## Every claim", "", "| about | claim | LUQ | P(True) | confidence |"]
    lines += ["| --- | --- | ---: | ---: | ---: |"]
    for subject, (_, score) in found.items():
        for claim in score.claims:
            belief = "" if claim.p_true is None else f"{claim.p_true:.2f}"
            lines.append(
                f"| {subject} | {claim.claim} | {claim.luq:.2f} | {belief} "
                f"| {claim.confidence:.2f} |"
            )
    return lines


def graded(found: dict[str, tuple[str, LongScore]], grades: dict[str, bool]) -> list[str]:
    """Return the section with Sem-ECE over the claims that were judged by hand."""
    claims = [claim for _, score in found.values() for claim in score.claims]
    judged = {
        claim.claim: right
        for claim in claims
        for start, right in grades.items()
        if claim.claim.startswith(start)
    }
    table = claim_draws({name: score for name, (_, score) in found.items()}, judged)
    if not table.height:
        return []
    result = sem_ece(table["question_id"], table["class_id"], table["correct"])
    scored = [claim for claim in claims if claim.claim in judged]
    truth = np.array([judged[claim.claim] for claim in scored], dtype=float)
    areas = {
        name: float(auroc(np.array([value(claim) for claim in scored]), truth))
        for name, value in (
            ("LUQ", lambda claim: claim.luq),
            ("P(True)", lambda claim: claim.p_true or 0.0),
            ("their mean", lambda claim: claim.confidence),
        )
    }
    ranked = ", ".join(f"{name} {value:.2f}" for name, value in areas.items())
    return [
        "",
        "## Sem-ECE over claims",
        "",
        f"{len(judged)} claims were judged by hand; {sum(judged.values())} are true. "
        f"AUROC over claims: {ranked}; so few claims are not enough to rank the scores. "
        "A claim is a question whose "
        "draws say it or do not. "
        f"Sem1-ECE {100 * result.sem1.value:.1f} points "
        f"({100 * result.sem1.low:.1f} to {100 * result.sem1.high:.1f}), "
        f"Sem2-ECE {100 * result.sem2.value:.1f} points "
        f"({100 * result.sem2.low:.1f} to {100 * result.sem2.high:.1f}).",
    ]


def main() -> None:
    found = asyncio.run(collect())
    lines = [*page(found), *graded(found, GRADES)]
    PAGE.write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")
    print(f"   written: {PAGE.relative_to(ROOT)}", flush=True)


# How each claim begins, and whether it is true, judged by hand against common reference works.
# Praise without a fact and claims that depend on the list one takes are left out.
GRADES = {
    "Marie Curie was a trailblazer in the world of science, a pioneer in the field of radio": True,
    "Paris, France, is a city renowned": True,
    "It is also a major tourist destination": True,
    "It is the fourth largest planet": False,
    "Mars is also the only planet that can support life": False,
    "The Amazon River is a vital ecosystem": True,
    "It is estimated that the Amazon supports an estimated 1.2 billion": False,
    "William Shakespeare was born in 1564 in Stratford-upon-Harrow": False,
    "He was the son of a wealthy merchant and a poet": False,
    "Shakespeare's father, William": False,
    "He was a member of the House of Worth": False,
    "Shakespeare's mother, Anne Harcourt": False,
    "The human heart is a vital organ": True,
    "It is composed of four chambers": True,
    "The heart is divided into two hemispheres": False,
    "The heart is a muscular organ": True,
    "It spans over 13,800 miles": False,
    "The wall is made of over 17,000 meters": False,
    "Albert Einstein was born in a Jewish family in Austria": False,
    "He was a brilliant physicist": True,
    "He was a Nobel Prize-winning physicist": True,
    "He was a German-American physicist": True,
    "The Pacific Ocean is a vast and diverse region covering approximately 140 million": False,
    "It is the second-largest ocean": False,
    "Japan is a country located in East Asia": True,
    "It is a major economic powerhouse, with a population of approximately 82 million": False,
    "Japan is also a major player": True,
}


if __name__ == "__main__":
    main()
