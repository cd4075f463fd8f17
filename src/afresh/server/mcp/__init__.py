"""The interface for agents: the Model Context Protocol over stdio and HTTP."""
