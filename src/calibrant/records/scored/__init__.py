"""The rows of a scores table once they are checked: one table, several of them, their weights."""
