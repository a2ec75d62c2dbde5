"""Checked tables as blocks of rows or cells that answer the questions of an audit."""
