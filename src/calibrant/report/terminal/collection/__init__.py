"""Tables of where data comes from: questions, answers, meanings, methods."""
