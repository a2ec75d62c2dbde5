"""Do two answers mean the same? Rules, sentence-pair models, and the classes made from both."""
