"""Define the syntax of programming languages, by which source files are divided into declarations."""

# ruff: noqa: E501 - patterns are cut where they can be read, not where they are long
import re
from typing import NamedTuple

from afresh.dataclass import dataclass


class DeclarationRule(NamedTuple):
    """A pattern for a kind of declaration; its group `name` matches the name, a group `owner` the type around it."""

    pattern: re.Pattern[str]
    has_members: bool = False  # declarations inside it are symbols, too
    needs_body: bool = False  # applies only if a body follows; without one, the match is a call or a mention
    needs_parent: bool = False  # applies only inside another declaration


@dataclass(frozen=True, slots=True)
class Language:
    name: str  # as Markdown code fences spell it
    skipped: re.Pattern[str]  # matches comments and strings
    rules: tuple[DeclarationRule, ...] = ()
    blocks: str = "brace"  # brace, end (as in Ruby) or indent
    line_comment: str = "//"
    lines_end: bool = False  # a declaration without a body ends with its line


def _rule(
    pattern: str, *, has_members: bool = False, needs_body: bool = False, needs_parent: bool = False
) -> DeclarationRule:
    return DeclarationRule(re.compile(pattern, re.MULTILINE), has_members, needs_body, needs_parent)


_ESCAPED = r"\\[\"'`]"  # an escaped quote outside of strings does not begin a string
_SLASHES = r"//[^\n]*|/\*[\s\S]*?(?:\*/|\Z)"
_DOUBLE, _SINGLE = r'"(?:\\[\s\S]|[^"\\\n])*"', r"'(?:\\[\s\S]|[^'\\\n])*'"
_CHARACTER = r"'(?:\\[^\n]{1,8}|[^'\\\n])'"
_HASH = r"(?<!\S)#[^\n]*"
_TEMPLATE = r"`(?:\\[\s\S]|[^`\\])*`"
_REGEX = (
    r"(?<=[=(,:!&|?{};\n])[ \t]{0,8}/(?![/*\s])(?:\\[^\n]|\[(?:\\[^\n]|[^\]\\\n]){0,100}+\]|[^/\\\[\n]){1,300}+/[a-z]*"
)
_SCRIPT = re.compile(f"{_SLASHES}|{_DOUBLE}|{_SINGLE}|{_TEMPLATE}|{_REGEX}|{_ESCAPED}")
_SHELL = re.compile(rf"{_HASH}|\\[\s\S]|\"(?:\\[\s\S]|[^\"\\])*\"|'[^']*'")
_NAMED_BY_HASH = re.compile(f"{_HASH}|{_DOUBLE}|{_SINGLE}|{_ESCAPED}")
_RUBY = re.compile(rf"^=begin\b[\s\S]*?(?:^=end\b|\Z)|{_HASH}|{_DOUBLE}|{_SINGLE}|{_ESCAPED}", re.MULTILINE)
_RUST = re.compile(
    rf"{_SLASHES}|\bb?r(?P<raw>#*)\"[\s\S]*?(?:\"(?P=raw)|\Z)|\"(?:\\[\s\S]|[^\"\\])*\"|{_CHARACTER}|{_ESCAPED}"
)
_GO = re.compile(f"{_SLASHES}|{_DOUBLE}|{_CHARACTER}|`[^`]*`|{_ESCAPED}")
_TRIPLE = re.compile(rf'{_SLASHES}|"""[\s\S]*?"""|{_DOUBLE}|{_CHARACTER}|{_ESCAPED}')
_PHP = re.compile(rf"{_SLASHES}|#(?!\[)[^\n]*|{_DOUBLE}|{_SINGLE}|{_ESCAPED}")
_LUA = re.compile(rf"--\[\[[\s\S]*?(?:\]\]|\Z)|--[^\n]*|{_DOUBLE}|{_SINGLE}|{_ESCAPED}")
_PYTHON = re.compile(rf'"""[\s\S]*?(?:"""|\Z)|\'\'\'[\s\S]*?(?:\'\'\'|\Z)|{_HASH}|{_DOUBLE}|{_SINGLE}|{_ESCAPED}')
_CSHARP = re.compile(rf'{_SLASHES}|^[ \t]*#[^\n]*|@"(?:""|[^"])*"|{_DOUBLE}|{_CHARACTER}|{_ESCAPED}', re.MULTILINE)
_CPP = re.compile(rf"{_SLASHES}|^[ \t]*#(?:\\\n|[^\n])*|{_DOUBLE}|{_CHARACTER}|{_ESCAPED}", re.MULTILINE)
_ELIXIR = re.compile(rf'"""[\s\S]*?(?:"""|\Z)|{_HASH}|{_DOUBLE}|{_ESCAPED}')

_NO_CALL = (
    r"(?!(?:if|else|for|foreach|while|switch|catch|return|new|throw|using|lock|do|try|function|await|yield|case|sizeof|"
    r"typeof|delete|assert|synchronized|when|guard|match|fixed|elif|super|this|constructor\.)\b)"
)
_ANNOTATIONS = r"(?:@[\w.]++(?:\([^()\n]*+\))?[ \t]++)*"
_MODIFIERS = (
    r"(?:(?:public|private|protected|internal|static|final|abstract|sealed|virtual|override|async|unsafe|extern|partial|"
    r"readonly|synchronized|native|default|strictfp|open|data|inline|inner|suspend|operator|infix|tailrec|external|"
    r"lateinit|const|companion|annotation|value|enum|fileprivate|mutating|nonmutating|convenience|required|lazy|weak|"
    r"indirect|dynamic|class|expect|actual|fun|nonisolated|isolated|package|non-sealed|ref|file|readonly|record)"
    r"(?:\([^()\n]*+\))?[ \t\n]++){0,12}"
)

_EXPORT = r"^[ \t]*(?:export[ \t]+)?(?:default[ \t]+)?(?:declare[ \t]+)?"
_JS_RULES = (
    _rule(
        _EXPORT + r"(?:abstract[ \t]+)?(?:const[ \t]+)?(?:class|interface|enum|namespace|module)[ \t]+(?P<name>[\w$.]+)",
        has_members=True,
        needs_body=True,
    ),
    _rule(_EXPORT + r"(?:async[ \t]+)?function\b[ \t]*+(?:\*[ \t]*+)?(?P<name>[\w$]+)"),
    _rule(_EXPORT + r"type[ \t]+(?P<name>[\w$]++)[^=\n;]{0,300}+="),
    _rule(
        _EXPORT + r"(?:const|let|var)[ \t]+(?P<name>[\w$]++)[^=\n;]{0,300}+=[ \t]*+(?:[\w$.]+\([ \t]*)?(?:async\b[ \t]*)?"
        r"(?:function\b|class\b|<[^\n]{0,200}>[ \t]*\(|\((?=[^\n]*(?:=>|\($|,$|\{$))|[\w$]+[ \t]*=>|\($)"
    ),
    _rule(r"^[ \t]*(?P<name>[\w$]+(?:\.[\w$]+)+)[ \t]*=[ \t]*(?:async[ \t]+)?(?:function\b|\([^()\n]*\)[ \t]*=>)"),
    _rule(
        r"^[ \t]++(?:(?:public|private|protected|static|async|readonly|get|set|override|abstract|declare)[ \t]++)*(?:\*[ \t]*+)?"
        + _NO_CALL + r"(?P<name>#?[\w$]++)[ \t]*+(?:<[^\n()]{0,200}>)?[?]?\(",
        needs_body=True,
        needs_parent=True,
    ),
    _rule(
        r"^[ \t]+(?:(?:public|private|protected|static|readonly)[ \t]+)*(?P<name>#?[\w$]+)[ \t]*(?::[^=\n]{0,200})?"
        r"=[ \t]*(?:async[ \t]*)?(?:\([^()\n]{0,200}\)|[\w$]++)[^=\n]{0,100}+=>",
        needs_body=True,
        needs_parent=True,
    ),
)  # fmt: skip
_MODIFIED = r"^[ \t]*" + _ANNOTATIONS + _MODIFIERS
_TYPES = (
    _MODIFIED + r"(?:class|interface|@interface|enum|struct|namespace|object|protocol|"
    r"extension|actor|trait|record)(?:[ \t]+(?:class|struct))?[ \t]+(?P<name>[\w.]+|`[^`\n]+`)"
)
_MEMBER = r"^[ \t]+" + _ANNOTATIONS + _MODIFIERS + _NO_CALL
_TYPED = (
    r"(?:<[^\n()]{1,200}>[ \t]++)?[\w.$:]++(?:<[^\n()=;]{0,300}>)?(?:\[[,\]\[]*+)?[?&*]*+[ \t]++(?:[*&][ \t]*+)?"
    + _NO_CALL + r"(?P<name>[\w$.]++)[ \t]*+(?:<[^\n()]{0,100}>)?\("
)  # fmt: skip
_CLASS_RULES = (
    _rule(_TYPES, has_members=True, needs_body=True),
    _rule(_MEMBER + _TYPED, needs_parent=True),
    _rule(_MEMBER + r"(?P<name>~?[\w$]++)[ \t]*+\(", needs_body=True, needs_parent=True),
)
_ANGLES = r"[^<>;{}]"
for _ in range(4):  # nested content between < and >
    _ANGLES = rf"(?:[^<>;{{}}]|<{_ANGLES}{{0,200}}+>)"
_PARENTHESES = r"\((?:[^();{}]|\((?:[^();{}]|\([^();{}]{0,200}+\)){0,200}+\)){0,1000}+\)"
_TEMPLATE_HEAD = rf"(?:template[ \t]*+<{_ANGLES}{{0,200}}+>\s*+)?"
_CPP_RULES = (
    _rule(
        r"^[ \t]*(?:typedef[ \t]+)?" + _TEMPLATE_HEAD + r"(?:inline[ \t]+)?"
        r"(?:struct|union|enum(?:[ \t]+(?:class|struct))?|class|namespace)[ \t]+(?:[A-Z_]{3,}[ \t]+)?(?:alignas\([^()\n]*+\)[ \t]*+)?"
        r"(?P<name>[\w:]++)[^;{}()=]{0,300}+\{",
        has_members=True,
        needs_body=True,
    ),
    _rule(r"^[ \t]*(?P<name>extern[ \t]++(?:\"[^\"\n]*+\"|\S*))[ \t]*+\{", has_members=True, needs_body=True),
    _rule(
        r"^[ \t]*+" + _TEMPLATE_HEAD + _NO_CALL
        + r"(?!#|typedef\b|public\b|private\b|protected\b|using\b|struct\s+\w+\s*\{)"
        r"(?:[A-Za-z_~][\w:<>,.\[\]]*+[ \t*&\n][ \t*&,>\n]*+){0,8}?" + _NO_CALL
        + r"(?P<name>(?:[\w<>]++::)*+(?:~?\w++|operator[ \t]*+[^\s(]{1,3}|operator\(\)))[ \t]*+(?="
        + _PARENTHESES + r"(?:[^;{}()]{0,80}+" + _PARENTHESES + r"){0,3}?[^;{}()]{0,80}"
        r"(?:\{|:[^:;]|noexcept|->|$))\(",
        needs_body=True,
    ),
)  # fmt: skip
_KOTLIN_RULES = (
    _rule(_TYPES, has_members=True),
    _rule(_MODIFIED + r"companion[ \t]+(?P<name>object)", has_members=True, needs_body=True),
    _rule(
        _MODIFIED + r"fun[ \t]+(?:<[^\n()]{1,200}>[ \t]+)?(?:[\w.]+(?:<[^\n()]{0,100}>)?[?]?\.)?"
        r"(?P<name>`[^`\n]+`|\w++)[ \t]*+\("
    ),
)
_SWIFT_RULES = (
    _rule(_TYPES, has_members=True, needs_body=True),
    _rule(
        _MODIFIED + r"(?:static[ \t]+)?(?:func[ \t]+(?P<name>[\w`]+|[^\s\w(]{1,4})"
    r"|(?P<owner>init|deinit|subscript)\b)"
    ),
)  # fmt: skip

LANGUAGES = {language.name: language for language in (
    Language("python", _PYTHON, (
        _rule(r"^[ \t]*class[ \t]+(?P<name>\w+)", has_members=True),
        _rule(r"^[ \t]*(?:async[ \t]+|c?p?)def[ \t]+(?P<name>\w+)"),
    ), blocks="indent", line_comment="#"),
    Language("javascript", _SCRIPT, _JS_RULES, lines_end=True),
    Language("typescript", _SCRIPT, _JS_RULES, lines_end=True),
    Language("go", _GO, (
        _rule(r"^func[ \t]+(?:\((?:\w++[ \t]++)?\*?(?P<owner>\w++)[^)\n]*+\)[ \t]*+)?(?P<name>\w+)"),
        _rule(r"^type[ \t]+(?P<name>\w+)"),
    ), lines_end=True),
    Language("rust", _RUST, (
        _rule(r"^[ \t]*(?:pub(?:\([^)\n]*\))?[ \t]+)?(?:unsafe[ \t]+)?(?:trait|mod)[ \t]+(?P<name>\w+)",
              has_members=True),
        _rule(r"^[ \t]*(?:unsafe[ \t]+)?impl\b(?:<(?:[^<>\n]|<[^<>\n]*+>)*+>)?+[ \t]*+"
              r"(?P<name>[^ \t{\n]++(?:[ \t]++(?!where\b)[^ \t{\n]++)*+)[ \t]*+(?:where\b|\{|$)", has_members=True, needs_body=True),
        _rule(r"^[ \t]*(?:pub(?:\([^)\n]*\))?[ \t]+)?(?:default[ \t]+)?(?:const[ \t]+)?(?:async[ \t]+)?(?:unsafe[ \t]+)?"
              r"(?:extern[ \t]++(?:\S+[ \t]++)?)?fn[ \t]+(?P<name>\w+)"),
        _rule(r"^[ \t]*(?:pub(?:\([^)\n]*\))?[ \t]+)?(?:struct|enum|union|type)[ \t]+(?P<name>\w+)"),
        _rule(r"^[ \t]*macro_rules![ \t]*(?P<name>\w+)"),
    )),
    Language("java", _TRIPLE, _CLASS_RULES),
    Language("csharp", _CSHARP, _CLASS_RULES),
    Language("kotlin", _TRIPLE, _KOTLIN_RULES, lines_end=True),
    Language("swift", _TRIPLE, _SWIFT_RULES, lines_end=True),
    Language("scala", _TRIPLE, (
        _rule(r"^[ \t]*(?:(?:\w+)(?:\[\w+\])?[ \t]+)*(?:class|object|trait)[ \t]+(?P<name>\w+)", has_members=True),
        _rule(r"^[ \t]*(?:(?:\w+)(?:\[\w+\])?[ \t]+)*def[ \t]+(?P<name>\w+)"),
    ), lines_end=True),
    Language("dart", _SCRIPT, (
        _rule(r"^[ \t]*(?:\w+[ \t]+)*(?:class|mixin|enum|extension)[ \t]+(?P<name>\w+)", has_members=True, needs_body=True),
        _rule(_MODIFIED + _NO_CALL + _TYPED, needs_body=True),
    )),
    Language("cpp", _CPP, _CPP_RULES),
    Language("php", _PHP, (
        _rule(r"^[ \t]*(?:(?:abstract|final|readonly)[ \t]+)*(?:class|interface|trait|enum|namespace)[ \t]+"
              r"(?P<name>[\w\\]+)", has_members=True),
        _rule(r"^[ \t]*(?:(?:abstract|final|public|protected|private|static)[ \t]+)*function[ \t]++"
              r"(?:&[ \t]*+)?(?P<name>\w+)"),
    )),
    Language("ruby", _RUBY, (
        _rule(r"^[ \t]*(?:class|module)[ \t]+(?P<name>(?:<<[ \t]*)?[\w:]+)", has_members=True),
        _rule(r"^[ \t]*(?:(?:private|protected|public|module_function)[ \t]+)?def[ \t]+(?P<name>(?:\w+\.)?[^\s(;=]+=?)"),
    ), blocks="end", line_comment="#"),
    Language("elixir", _ELIXIR, (
        _rule(r"^[ \t]*def(?:module|protocol|impl)[ \t]+(?P<name>[\w.]+)", has_members=True),
        _rule(r"^[ \t]*def(?:p|macro|macrop|guard)?[ \t]+(?P<name>[\w?!]+)"),
    ), blocks="end", line_comment="#"),
    Language("lua", _LUA, (
        _rule(r"^[ \t]*(?:local[ \t]+)?function[ \t]+(?P<name>[\w.:]+)"),
    ), blocks="end", line_comment="--"),
    Language("bash", _SHELL, (
        _rule(r"^[ \t]*(?:function[ \t]+)?(?P<name>[\w:.-]+)[ \t]*\([ \t]*\)(?=\s*[{(])"),
        _rule(r"^[ \t]*function[ \t]+(?P<name>[\w:.-]+)(?=\s*\{)"),
    ), line_comment="#"),
    Language("perl", _NAMED_BY_HASH, (
        _rule(r"^[ \t]*sub[ \t]+(?P<name>\w+)", needs_body=True),
    ), line_comment="#"),
    Language("r", _NAMED_BY_HASH, (
        _rule(r"^(?P<name>[\w.]+)[ \t]*(?:<-|=)[ \t]*function\b", needs_body=True),
    ), line_comment="#"),
)}  # fmt: skip
