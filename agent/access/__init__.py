"""Who may do and see what: scopes, ceilings, roots."""
