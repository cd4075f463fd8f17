"""Wording, JSON and numbers that all faces share."""
