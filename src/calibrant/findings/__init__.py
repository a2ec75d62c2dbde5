"""What is said of data: documents, claims with their tests, and what labels can show.

Start with `documents.entries.Part` (the struct of everything in a document),
`claims.ClaimRule` (a sentence with its declared test) and `claims.next_step.next_step`
(what to do with a result).
"""
