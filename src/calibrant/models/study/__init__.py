"""From a study file to draws: plan, prompts, runner, tables."""
