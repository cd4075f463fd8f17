"""The sizes that chunks aim at, and how strong a border is; a smaller rank is a better place to cut."""

MIN_CHARS = 800
MAX_CHARS = 2000
TINY_CHARS = 200  # an introduction up to this size stays with the section that follows it
SHORT_CHARS = 80  # a block up to this size stays with the one that follows it
MAX_TITLE = 200
MAX_REPEAT = 400  # longer table heads and fence lines are not repeated

# Headings rank by their level, 1 to 6.
BLOCK = 8
ROW = 9  # and the item of a list
INNER = 10  # a block within an item or a quote
NESTED = 12  # the item of a list within a list
BLANK_LINE = 13
LINE = 14
SENTENCE = 15
WORD = 16
