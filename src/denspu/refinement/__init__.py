"""Labels for all of U, refined by rounds of ordinary training."""
