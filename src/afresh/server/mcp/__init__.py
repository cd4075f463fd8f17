"""What agents speak to: the Model Context Protocol, over stdio and over HTTP."""
