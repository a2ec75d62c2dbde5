"""Questions: files, public question sets, generated benchmarks."""

from calibrant.sources.files import load_questions
from calibrant.sources.layouts import LAYOUTS
from calibrant.sources.tabular import TabularTask, tabular_questions

__all__ = ["LAYOUTS", "TabularTask", "load_questions", "tabular_questions"]
