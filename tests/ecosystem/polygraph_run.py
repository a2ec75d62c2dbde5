"""Run LM-Polygraph on a tiny untrained model and save its manager: `polygraph_run.py FILE`.

Needs lm-polygraph and torch. The model has random weights and its words are numbers; what matters
is the file that `UEManager.save` writes.
"""

import random
import sys
from pathlib import Path

import torch
from lm_polygraph import UEManager, WhiteboxModel
from lm_polygraph.defaults.register_default_stat_calculators import (
    register_default_stat_calculators,
)
from lm_polygraph.estimators import (
    LexicalSimilarity,
    MaximumSequenceProbability,
    MeanTokenEntropy,
    Perplexity,
)
from lm_polygraph.generation_metrics import AccuracyMetric
from lm_polygraph.ue_metrics import PredictionRejectionArea
from lm_polygraph.utils.builder_enviroment_stat_calculator import BuilderEnvironmentStatCalculator
from lm_polygraph.utils.dataset import Dataset
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

QUESTIONS = 24


def tiny_model():
    torch.manual_seed(0)
    words = ["<pad>", "</s>", "<unk>", *map(str, range(20))]
    tokenizer = Tokenizer(WordLevel({word: i for i, word in enumerate(words)}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = Whitespace()
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", eos_token="</s>", unk_token="<unk>"
    )
    config = GPT2Config(
        vocab_size=len(words),
        n_positions=64,
        n_embd=16,
        n_layer=1,
        n_head=2,
        bos_token_id=1,
        eos_token_id=1,
        pad_token_id=0,
        initializer_range=0.6,
        attn_implementation="eager",
    )
    return WhiteboxModel(GPT2LMHeadModel(config).eval(), fast, model_path="tiny/untrained")


def evaluated(model, texts, targets):
    manager = UEManager(
        data=Dataset(texts, targets, batch_size=8),
        model=model,
        estimators=[
            MaximumSequenceProbability(),
            Perplexity(),
            MeanTokenEntropy(),
            LexicalSimilarity("rougeL"),
        ],
        builder_env_stat_calc=BuilderEnvironmentStatCalculator(model=model),
        available_stat_calculators=register_default_stat_calculators("Whitebox"),
        generation_metrics=[AccuracyMetric()],
        ue_metrics=[PredictionRejectionArea()],
        processors=[],
        ignore_exceptions=False,
        max_new_tokens=3,
    )
    manager()
    return manager


def main(target):
    rng = random.Random(7)
    texts = [" ".join(str(rng.randrange(20)) for _ in range(4)) for _ in range(QUESTIONS)]
    model = tiny_model()
    said = evaluated(model, texts, ["0"] * QUESTIONS).stats["greedy_texts"]
    # Some targets are what the model says, so that some answers are right.
    targets = [text if rng.random() < 0.6 else "0" for text in said]
    evaluated(model, texts, targets).save(str(target))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
