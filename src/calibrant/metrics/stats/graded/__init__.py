"""What machine grades and a few checked answers show together.

Grades are 0 or 1, each with the grader's own chance q that the answer is right and a flag for
doubt. Some answers are checked by people. The estimates here are about the truth, not about the
grades, and their intervals cover the errors of the grader.
"""
