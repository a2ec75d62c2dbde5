"""The dispatcher: what the ledger lacks is asked for, tried again, and kept."""
