"""Neural networks as plain modules; they know nothing of PU learning."""
