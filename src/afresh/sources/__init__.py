"""Read sources of each kind: web sites, folders, archives, repositories and lists of links."""
