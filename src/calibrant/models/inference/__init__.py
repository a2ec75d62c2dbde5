"""A small language model computed with numpy: file, tokens, forward pass."""
