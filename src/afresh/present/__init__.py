"""Wording, JSON and number formats that all interfaces share."""
