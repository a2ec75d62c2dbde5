"""Opening data: arrays, tables, studies, logs. Below this package nobody asks what kind it was."""
