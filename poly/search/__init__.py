"""The search for the fastest schedule in a space: strategies, decisions, budgets."""
