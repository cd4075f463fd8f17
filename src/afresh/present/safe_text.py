"""The one place where text from outside is made safe to print."""

import re

# Everything that could move the cursor, change colours or reorder what is read: C0 and C1 controls, DEL,
# line separators, bidirectional overrides, zero-width characters and lone surrogates.
_UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028\u2029\u202a-\u202e\u2060\u2066-\u2069\ufeff\ud800-\udfff]"
)

# Controls, and what reorders the text around it: nothing that a program would miss.
_ACTED_ON = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def clean(text: str, *, lines: bool = False) -> str:
    """The text with every control character made visible; one line unless `lines` are kept."""
    if not lines:
        return _UNSAFE.sub(_visible, " ".join(re.split(r"[ \t\r\n\f\v]+", text)).strip())
    tidy = text.replace("\r\n", "\n").expandtabs(4)
    return "\n".join(_UNSAFE.sub(_visible, line) for line in tidy.split("\n"))


def inert(text: str) -> str:
    """The text as it is, but what a terminal would act on made visible: safe at the end of any pipe."""
    return _ACTED_ON.sub(_visible, whole_text(text).replace("\r\n", "\n"))


def _visible(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x20:
        return chr(0x2400 + code)  # the control pictures: ␛ for escape
    return "␡" if code == 0x7F else "�"


def whole_text(text: str) -> str:
    """The text as valid Unicode: surrogate pairs are joined, lone surrogates replaced."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text
