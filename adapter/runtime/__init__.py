"""The seam: what every runtime offers the Agent, in v2 vocabulary."""
