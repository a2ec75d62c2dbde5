"""MACE: questions with exactly k right answers, by rule or from facts."""
