from pathlib import Path

import pytest

# These run inside the frameworks' own environment, not here.
collect_ignore = [
    "export_to_tools.py",
    "helm_run.py",
    "inspect_tasks.py",
    "lm_eval_run.py",
    "make_fixtures.py",
    "polygraph_run.py",
    "read_with_inspect.py",
    "uqlm_table.py",
    "writers",
]

FIXTURES = Path(__file__).parent / "fixtures"


@pytest.fixture
def inspect_log() -> Path:
    """Written by Inspect: 8 questions, 10 epochs, log-probabilities, a stated confidence."""
    return FIXTURES / "inspect.eval"


@pytest.fixture
def lm_eval_file():
    """Return a function from task name to the samples file that lm-eval wrote for it."""
    return lambda task: next((FIXTURES / "lm_eval").glob(f"samples_{task}_*.jsonl"))
