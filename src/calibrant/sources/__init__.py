"""Questions: files, public question sets, generated benchmarks."""

from calibrant.records.study import TabularTask
from calibrant.sources.files import load_questions, tabular_questions
from calibrant.sources.layouts import LAYOUTS

__all__ = ["LAYOUTS", "TabularTask", "load_questions", "tabular_questions"]
