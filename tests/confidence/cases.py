"""Hand-made questions that the tests share."""

import math

from calibrant.answers.confidence import Draws, Greedy, Probes, Question


def headache(rest: int, aspirin: int, wrong: int) -> Question:
    """The headache example: two right remedies and wrong ones, all in different classes."""
    names = ["rest"] * rest + ["aspirin"] * aspirin + ["vinegar"] * wrong
    return Question(classes=names, correct=[name != "vinegar" for name in names])


def full_question() -> Question:
    """A question with every input that any method needs."""
    classes = ["lima", "lima", "quito", "lima", "bogota"]
    logs = [math.log(0.5), math.log(0.5), math.log(0.2), math.log(0.3), math.log(0.1)]
    axis = {"lima": [1.0, 0.0, 0.0], "quito": [0.0, 1.0, 0.0], "bogota": [0.0, 0.0, 1.0]}
    stated = Draws(
        classes=["lima", "quito", "lima"],
        correct=[True, False, True],
        answers=["Lima", "Quito", "Lima!"],
        stated=[0.9, 0.6, 0.5],
    )
    one = Draws(classes=["quito"], correct=[False], answers=["Quito"], stated=[0.7])
    same = [[float(a == b) for b in classes] for a in classes]
    return Question(
        classes=classes,
        correct=[name == "lima" for name in classes],
        answers=["Lima", "Lima", "Quito", "Lima, Peru", "Bogota"],
        token_logprobs=[[value] for value in logs],
        greedy=Greedy(
            answer="Lima",
            label="lima",
            correct=True,
            token_logprobs=[math.log(0.8), math.log(0.5)],
            top_logprobs={"Li": math.log(0.5), "Qui": math.log(0.25), "Bo": math.log(0.25)},
            options={"A": math.log(0.6), "B": math.log(0.2)},
            option_correct=True,
            alone_logprob=math.log(0.1),
            yes_probability=0.3,
            no_probability=0.1,
            token_texts=["Li", "ma"],
            token_alternatives=[
                {"Li": math.log(0.8), "Qui": math.log(0.2)},
                {
                    "ma": math.log(0.5),
                    "MA": math.log(0.25),
                    "the": math.log(0.125),
                    "on": math.log(0.125),
                },
            ],
        ),
        verb=one,
        verb_samples=stated,
        verb_topk=one,
        verb_topk_samples=stated,
        p_true=Probes([True, True, False, None], true_probability=0.6, false_probability=0.2),
        p_true_cand=Probes([True, False], true_probability=0.5, false_probability=0.5),
        self_ask=0.8,
        self_ask_cand=0.4,
        embeddings=[axis[name] for name in classes],
        similarity=same,
        token_texts=[["Lima"], ["Lima"], ["Quito"], ["Peru"], ["Bogota"]],
        verified={"lima": 0.9, "quito": 0.2},
        panel=[0.9, 0.4],
        selfcheck=[True, True, False, None],
        question_id="q",
        model="m",
    )
