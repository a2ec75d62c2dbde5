"""Where a model is reached: HTTP interfaces, the embedded model, replay, several at once."""
