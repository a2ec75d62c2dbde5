"""Studies: the scripts that write every number, table and figure of docs/studies."""
