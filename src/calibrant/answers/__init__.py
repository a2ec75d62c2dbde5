"""From drawn answers to meanings, grades and confidences."""
