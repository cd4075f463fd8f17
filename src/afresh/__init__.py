"""afresh keeps a searchable copy of documentation fresh and processes only what changed."""

__version__ = "0.1.0"
HOME_PAGE = "https://github.com/afresh-dev/afresh"  # the same as in pyproject.toml
