"""The walk of a page and the runs around it."""
