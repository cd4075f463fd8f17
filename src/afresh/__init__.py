"""afresh keeps a searchable knowledge base fresh and pays only for what changed."""

__version__ = "0.1.0"
HOME_PAGE = "https://github.com/afresh-dev/afresh"  # the same as in pyproject.toml
