"""Ways of not transferring: one rule each, that speaks where a probe saw just that."""
