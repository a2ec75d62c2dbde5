"""Parts of `cascade`: aligned answers with their costs, and the policy that is saved."""
