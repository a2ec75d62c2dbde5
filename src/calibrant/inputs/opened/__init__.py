"""What a verb was given, opened once: arrays, tables, a study or logs answer the same questions."""
