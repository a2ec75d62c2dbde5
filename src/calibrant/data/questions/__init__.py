"""Questions: files, public question sets, generated benchmarks."""

from calibrant.data.questions.files import load_questions, tabular_questions
from calibrant.data.questions.layouts import LAYOUTS
from calibrant.data.study import TabularTask

__all__ = ["LAYOUTS", "TabularTask", "load_questions", "tabular_questions"]
