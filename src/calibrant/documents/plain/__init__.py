"""The parts of documents as plain data: a key that claims or report misspell fails in mypy.

Which keys an entry has depends on the input, so that none is required. The same parts as classes,
for whoever reads results by attribute, are in `calibrant.documents.entries`.
"""
