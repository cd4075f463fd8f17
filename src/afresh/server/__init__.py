"""The HTTP server: REST API, web interface, MCP and webhooks."""
