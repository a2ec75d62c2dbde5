"""What is said of data: documents, claims with their tests, and what labels can show."""
