"""The kinds of sources: web sites, folders, archives, repositories and lists of links."""
