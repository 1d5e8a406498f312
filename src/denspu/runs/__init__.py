"""From files to a run folder: model, ranked list, facts for the report."""
