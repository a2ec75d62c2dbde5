"""A front for several models that asks the one that a policy chooses."""
