"""The web interface: pages for people, made on the server from the same use cases as every other face."""
