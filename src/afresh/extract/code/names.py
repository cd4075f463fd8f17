"""Which names code has: by language, those that are cut by symbol first."""

BY_SYMBOL = {
    "python": (".py", ".pyi", ".pyw", ".pyx", ".pxd"),
    "javascript": (".js", ".mjs", ".cjs", ".jsx"),
    "typescript": (".ts", ".tsx", ".mts", ".cts"),
    "go": (".go",),
    "rust": (".rs",),
    "java": (".java", ".groovy", ".gradle"),
    "csharp": (".cs",),
    "kotlin": (".kt", ".kts"),
    "swift": (".swift",),
    "scala": (".scala", ".sc"),
    "dart": (".dart",),
    "cpp": (".c", ".h", ".cc", ".cpp", ".cxx", ".hpp", ".hh", ".hxx", ".inl", ".ipp", ".cu", ".ino"),
    "php": (".php",),
    "ruby": (".rb", ".rake", ".gemspec", "rakefile", "gemfile"),
    "elixir": (".ex", ".exs"),
    "lua": (".lua",),
    "bash": (".sh", ".bash", ".zsh", ".ksh", ".bats"),
    "perl": (".pl", ".pm"),
    "r": (".r",),
}
AS_ONE = {  # without symbols of their own, but still code
    "sql": (".sql",),
    "toml": (".toml",),
    "ini": (".ini", ".cfg", ".conf", ".properties"),
    "css": (".css", ".scss"),
    "makefile": ("makefile", ".mk"),
    "dockerfile": ("dockerfile",),
    "protobuf": (".proto",),
    "graphql": (".graphql",),
    "hcl": (".tf",),
    "haskell": (".hs",),
    "clojure": (".clj",),
    "ocaml": (".ml",),
    "erlang": (".erl",),
    "zig": (".zig",),
    "julia": (".jl",),
    "powershell": (".ps1",),
    "batch": (".bat", ".cmd"),
    "cmake": (".cmake", "cmakelists.txt"),
    "diff": (".diff", ".patch"),
}
_LANGUAGES = {ending: name for name, endings in (BY_SYMBOL | AS_ONE).items() for ending in endings}
ENDINGS = tuple(_LANGUAGES)


def language_of_name(name: str) -> str:
    """The language of a file by its name, as fences call it; "" for one that is no code."""
    lower = name.lower()
    return _LANGUAGES.get(lower) or _LANGUAGES.get("." + lower.rpartition(".")[2], "")
