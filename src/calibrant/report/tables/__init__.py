"""Tables and sentences of every kind of document: a module per kind gives neutral blocks."""
