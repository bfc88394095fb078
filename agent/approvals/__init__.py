"""Approvals: who may see them, who may answer them, what is told of them."""
