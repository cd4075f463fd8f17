"""How people and programs reach the knowledge base."""
