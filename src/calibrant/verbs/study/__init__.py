"""What joins several verbs: running a study, analysing it, the demo, the study's page."""
