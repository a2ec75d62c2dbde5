"""Tables, their schemas, studies and the ledger."""
