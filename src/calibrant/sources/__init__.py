"""Questions: files, public question sets, generated benchmarks."""

from calibrant.sources.files import TabularTask, load_questions, tabular_questions
from calibrant.sources.layouts import LAYOUTS

__all__ = ["LAYOUTS", "TabularTask", "load_questions", "tabular_questions"]
