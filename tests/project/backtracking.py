"""Counts the steps that a backtracking matcher takes for a pattern: the work of `re`, without a clock."""

import re
import sys
from collections.abc import Callable, Iterator
from re import _constants as c
from re import _parser as parser
from typing import Any

Then = Callable[[int], int | None]  # what follows; where the match ends, None for no match
MOST_STEPS = 20_000  # for a text of SIZE
ALPHABET = "a0 -_.:/@<>\"'=?&;#\n\t`*[](){}|\\!~+%$,^Aé中"
SIZE = 24  # characters of a text, which is then doubled
LARGER = 8  # times that size: where the work grows, it is counted again, as a repeat of a few ends there
MOST_GROWTH = 2.5
MANY = 20  # repeats that may go on longer than this are as good as endless


class TooManySteps(Exception):
    """Counting on tells nothing new."""


class Matcher:
    """Matches one pattern as `re` does, and counts."""

    def __init__(self, pattern: re.Pattern[Any]) -> None:
        text = pattern.pattern
        self.flags = pattern.flags
        tree = parser.parse(text.decode("latin-1") if isinstance(text, bytes) else text, pattern.flags)
        self.tree = _plain(tree)
        self._taken: dict[tuple[Any, ...], bool] = {}
        self.steps = 0
        self._most = MOST_STEPS
        self._text = ""
        self._groups: dict[int, tuple[int, int]] = {}
        alike: dict[tuple[bool, ...], str] = {}
        singles = list(_singles(self.tree))
        for char in ALPHABET:
            alike.setdefault((char.isalnum(), *(self.takes(*each, char) for each in singles)), char)
        self.letters = "".join(alike.values())  # one of each kind that the pattern tells apart

    def scan(self, text: str, *, anchored: bool, whole: bool = False, most: int = MOST_STEPS) -> int:
        """The steps to find every match in a text, as `sub` does; `anchored`: only at its beginning."""
        self.steps, self._text, self._most = 0, text, most
        at = 0
        try:
            while at <= len(text):
                self._groups = {}
                end = self._seq(self.tree, 0, at, (lambda e: e if e == len(text) else None) if whole else (lambda e: e))
                if anchored:
                    break
                at = end if end is not None and end > at else at + 1
        except (TooManySteps, RecursionError):
            self.steps = most
        return self.steps

    def _step(self, number: int = 1) -> None:
        self.steps += number
        if self.steps >= self._most:
            raise TooManySteps

    def _seq(self, nodes: list[Any], number: int, at: int, then: Then) -> int | None:
        while number < len(nodes):
            op, argument = nodes[number]
            if op in _SINGLE:
                self._step()
                if not self._one(op, argument, at):
                    return None
                at += 1
                number += 1
                continue
            if number + 1 < len(nodes):
                then = self._followed_by(nodes, number + 1, then)
            return self._node(op, argument, at, then)
        return then(at)

    def _followed_by(self, nodes: list[Any], number: int, then: Then) -> Then:
        return lambda at: self._seq(nodes, number, at, then)

    def _node(self, op: Any, argument: Any, at: int, then: Then) -> int | None:
        self._step()
        if op is c.AT:
            return then(at) if self._at(argument, at) else None
        if op is c.BRANCH:
            return next((end for each in argument[1] if (end := self._seq(each, 0, at, then)) is not None), None)
        if op is c.SUBPATTERN:
            group, _, _, inner = argument

            def close(end: int) -> int | None:
                before = self._groups.get(group)
                self._groups[group] = (at, end)
                found = then(end)
                if found is None and before is not None:
                    self._groups[group] = before
                return found

            return self._seq(inner, 0, at, close if group else then)
        if op in _REPEATS:
            low, high, inner = argument
            return self._repeat(op, low, high, inner, at, then)
        if op is c.ATOMIC_GROUP:
            end = self._seq(argument, 0, at, lambda end: end)
            return None if end is None else then(end)
        if op in (c.ASSERT, c.ASSERT_NOT):
            found = self._look(argument, at)
            return then(at) if found is (op is c.ASSERT) else None
        if op is c.GROUPREF:
            start, end = self._groups.get(argument, (0, 0))
            piece = self._text[start:end]
            self._step(len(piece))
            return then(at + len(piece)) if self._text.startswith(piece, at) else None
        if op is c.GROUPREF_EXISTS:
            group, yes, no = argument
            return self._seq(yes if group in self._groups else no, 0, at, then)
        raise NotImplementedError(op)

    def _look(self, argument: Any, at: int) -> bool:
        back, inner = argument
        at -= back
        if at < 0:
            return False
        return self._seq(inner, 0, at, lambda end: end) is not None

    def _repeat(self, op: Any, low: int, high: int, inner: Any, at: int, then: Then) -> int | None:
        if len(inner) == 1 and inner[0][0] in _SINGLE:
            return self._repeat_one(op, (low, high), inner[0], at, then)
        nodes = inner
        if op is c.POSSESSIVE_REPEAT:
            count = 0
            while count < high:
                end = self._seq(nodes, 0, at, lambda end: end)
                if end is None or end == at:
                    break
                at, count = end, count + 1
            return then(at) if count >= low else None

        def more(count: int, at: int) -> int | None:
            self._step()
            further = lambda end: more(count + 1, end) if end > at or count < low else None  # noqa: E731
            if op is c.MIN_REPEAT and count >= low and (found := then(at)) is not None:
                return found
            if count < high and (found := self._seq(nodes, 0, at, further)) is not None:
                return found
            return then(at) if op is c.MAX_REPEAT and count >= low else None

        return more(0, at)

    def _repeat_one(self, op: Any, times: tuple[int, int], item: Any, at: int, then: Then) -> int | None:
        (low, high), (kind, what), end = times, item, at
        if op is c.MIN_REPEAT:
            while True:
                if end - at >= low and (found := then(end)) is not None:
                    return found
                self._step()
                if end - at >= high or not self._one(kind, what, end):
                    return None
                end += 1
        while end - at < high and self._one(kind, what, end):
            self._step()
            end += 1
        if op is c.POSSESSIVE_REPEAT:
            return then(end) if end - at >= low else None
        while end - at >= low:
            self._step()
            if (found := then(end)) is not None:
                return found
            end -= 1
        return None

    def _one(self, op: Any, argument: Any, at: int) -> bool:
        if at >= len(self._text):
            return False
        char = self._text[at]
        key = (op, argument if op is not c.IN else id(argument), char)
        if (known := self._taken.get(key)) is None:
            known = self._taken[key] = self.takes(op, argument, char)
        return known

    def takes(self, op: Any, argument: Any, char: str) -> bool:
        """Whether a node for one character takes it."""
        if op is c.ANY:
            return bool(self.flags & re.DOTALL) or char != "\n"
        letters = {char, char.lower(), char.upper()} if self.flags & re.IGNORECASE else {char}
        if op is c.LITERAL:
            return chr(argument) in letters
        if op is c.NOT_LITERAL:
            return chr(argument) not in letters
        negated = argument[0][0] is c.NEGATE
        found = any(self._in(each, one) for each in argument[negated:] for one in letters)
        return bool(found is not negated)

    def _in(self, item: Any, char: str) -> bool:
        op, argument = item
        if op is c.LITERAL:
            return chr(argument) == char
        if op is c.RANGE:
            return bool(argument[0] <= ord(char) <= argument[1])
        name = str(argument)
        kind = name.rpartition("_")[2]
        held = {"DIGIT": char.isdigit(), "SPACE": char.isspace(), "WORD": char.isalnum() or char == "_"}
        return bool(held[kind] is not ("NOT" in name))

    def _at(self, kind: Any, at: int) -> bool:
        text, end = self._text, len(self._text)
        if kind in (c.AT_BOUNDARY, c.AT_NON_BOUNDARY):
            word = [0 <= each < end and (text[each].isalnum() or text[each] == "_") for each in (at - 1, at)]
            return (word[0] is not word[1]) is (kind is c.AT_BOUNDARY)
        if kind in (c.AT_BEGINNING, c.AT_BEGINNING_STRING):
            lines = kind is c.AT_BEGINNING and self.flags & re.MULTILINE
            return at == 0 or bool(lines and text[at - 1] == "\n")
        if kind is c.AT_END_STRING:
            return at == end
        return at == end or (text[at] == "\n" and (at == end - 1 or bool(self.flags & re.MULTILINE)))


_SINGLE = (c.LITERAL, c.NOT_LITERAL, c.IN, c.ANY)
_REPEATS = (c.MAX_REPEAT, c.MIN_REPEAT, c.POSSESSIVE_REPEAT)


def _plain(tree: Any) -> list[Any]:
    """A parsed pattern in lists and tuples, which are quicker to walk; a look knows how far back it goes."""
    nodes: list[Any] = []
    for op, argument in tree:
        if op in _REPEATS:
            argument = (*argument[:2], _plain(argument[2]))
        elif op is c.SUBPATTERN:
            argument = (*argument[:3], _plain(argument[3]))
        elif op is c.ATOMIC_GROUP:
            argument = _plain(argument)
        elif op is c.BRANCH:
            argument = (None, [_plain(each) for each in argument[1]])
        elif op in (c.ASSERT, c.ASSERT_NOT):
            direction, inner = argument
            argument = (inner.getwidth()[1] if direction < 0 else 0, _plain(inner))
        elif op is c.GROUPREF_EXISTS:
            group, yes, no = argument
            argument = (group, _plain(yes), _plain(no or ()))
        nodes.append((op, argument))
    return nodes


def _singles(nodes: list[Any]) -> Iterator[tuple[Any, Any]]:
    """The nodes for one character, at any depth."""
    for op, argument in nodes:
        if op in _SINGLE:
            yield op, argument
        for inner in _inner(op, argument):
            yield from _singles(inner)


def _inner(op: Any, argument: Any) -> list[list[Any]]:
    """What stands within a node."""
    if op in _REPEATS:
        return [list(argument[2])]
    if op is c.SUBPATTERN:
        return [list(argument[3])]
    if op is c.ATOMIC_GROUP:
        return [list(argument)]
    if op is c.BRANCH:
        return [list(each) for each in argument[1]]
    return [list(argument[1])] if op in (c.ASSERT, c.ASSERT_NOT) else []


def attacks(matcher: Matcher) -> Iterator[tuple[str, str]]:
    """Beginning and what is repeated of texts that make a pattern work hard; something odd ends them."""
    seen: set[tuple[str, str]] = set()
    for prefix, bodies in _repeats(matcher, matcher.tree, ""):
        for body in bodies:
            for start, unit in ((prefix, body), ("", prefix + body), ("", prefix or body)):
                if unit and (start, unit) not in seen:
                    seen.add((start, unit))
                    yield start, unit


def _repeats(matcher: Matcher, nodes: list[Any], prefix: str) -> Iterator[tuple[str, list[str]]]:
    """Every repeat without end: a text that leads to it, and texts that it takes."""
    for op, argument in nodes:
        if op in _REPEATS and argument[1] > MANY:
            yield prefix, _samples(matcher, list(argument[2]))
        for inner in _inner(op, argument):
            yield from _repeats(matcher, inner, prefix)
        prefix += _sample(matcher, [(op, argument)])


def _samples(matcher: Matcher, nodes: list[Any]) -> list[str]:
    """Several texts that one round of a repeat takes: of one character each that it may be."""
    if len(nodes) == 1 and nodes[0][0] in _SINGLE:
        op, argument = nodes[0]
        return [each for each in matcher.letters if matcher.takes(op, argument, each)] or [_sample(matcher, nodes)]
    found = {_sample(matcher, nodes)}
    for op, argument in nodes:
        if op is c.BRANCH:
            found |= {_sample(matcher, list(each)) for each in argument[1]}
        if op is c.SUBPATTERN:
            found |= set(_samples(matcher, list(argument[3])))
        if op in (c.MAX_REPEAT, c.MIN_REPEAT):
            found |= set(_samples(matcher, list(argument[2])))
    return sorted(found)


def _sample(matcher: Matcher, nodes: list[Any]) -> str:
    """A short text that the nodes take, as far as that can be told without trying."""
    text = ""
    for op, argument in nodes:
        if op is c.LITERAL:
            text += chr(argument)
        elif op in _SINGLE:
            text += next((char for char in ALPHABET if matcher.takes(op, argument, char)), "\u2028")
        elif op in _REPEATS:
            text += _sample(matcher, list(argument[2])) * min(max(argument[0], 0), 3)
        elif op is c.SUBPATTERN:
            text += _sample(matcher, list(argument[3]))
        elif op is c.ATOMIC_GROUP:
            text += _sample(matcher, list(argument))
        elif op is c.BRANCH:
            text += _sample(matcher, list(argument[1][0]))
    return text


def growth(pattern: re.Pattern[Any], *, anchored: bool, whole: bool) -> tuple[float, str]:
    """How many times more work a text of double the length makes at worst, and the shorter text."""
    sys.setrecursionlimit(max(sys.getrecursionlimit(), 20_000))
    matcher = Matcher(pattern)

    def grown(start: str, unit: str, rounds: int, most: int) -> float:
        once, twice = (f"{start}{unit * rounds * factor}\x00" for factor in (1, 2))
        few = matcher.scan(once, anchored=anchored, whole=whole, most=most)
        if few <= 4 * len(once):  # four times that is still little work
            return 0.0
        many = matcher.scan(twice, anchored=anchored, whole=whole, most=3 * few)
        if many <= 8 * len(twice):  # little work grows in steps
            return 0.0
        return many / few if few < most else float("inf")

    highest, by = 0.0, ""
    for start, unit in attacks(matcher):
        rounds = 1 + SIZE // len(unit)
        times = grown(start, unit, rounds, MOST_STEPS)
        if MOST_GROWTH < times < float("inf"):
            times = grown(start, unit, LARGER * rounds, LARGER * MOST_STEPS)
        if times > highest:
            highest, by = times, f"{start}{unit * rounds}"
        if highest > MOST_GROWTH:
            break
    return highest, by
