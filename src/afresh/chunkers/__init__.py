"""From a document to the pieces that are searched."""
