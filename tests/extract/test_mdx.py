"""MDX, and where the links of files lead."""

import time

import pytest

from afresh.extract.markdown import extract_mdx, without_components
from afresh.model.fetch import Body
from afresh.urls.files import link_target

TEXT = """---
title: Jars
---
import Tabs from '@theme/Tabs'
import {
  Card,
} from '@site/cards'
export const sizes = [1, 2]

# Jars

{/* a comment */}
<Tabs groupId="os" onChange={() => { x > 1 }}>
<TabItem value="a" label="For plums">

Fill <Badge/> the `<Jar>` with <b>plums</b>; see [lids](./lids.mdx).

</TabItem>
</Tabs>

```jsx
import X from 'x'
<Jar>kept</Jar>
```
"""


def test_imports_and_tags_of_components_go_and_their_text_stays() -> None:
    document = extract_mdx(Body(url="https://github.com/o/r/blob/main/docs/a.mdx", data=TEXT.encode()))
    assert document.title == "Jars"
    assert document.markdown == (
        "# Jars\n\n**For plums**\n\nFill  the `<Jar>` with <b>plums</b>; see [lids](./lids.mdx).\n\n"
        "```jsx\nimport X from 'x'\n<Jar>kept</Jar>\n```"
    )
    assert [link.url for link in document.links] == ["https://github.com/o/r/blob/main/docs/lids.mdx"]


@pytest.mark.parametrize("text", ["<A" * 50_000, "<A {" * 20_000, '<A "' * 30_000, "`" * 50_000, "{/*" * 30_000])
def test_F63_tags_without_end_are_quick(text: str) -> None:
    begun = time.process_time()
    without_components(text)
    assert time.process_time() - begun < 5


@pytest.mark.parametrize(
    ("raw_url", "base", "target"),
    [
        ("b.md#x", "file:///docs/a.md", "file:///docs/b.md"),
        ("../ä b.md?raw=1", "file:///docs/in/a.md", "file:///docs/%C3%A4%20b.md"),
        ("%5Bx%5D.md", "file:///docs/a.md", "file:///docs/%5Bx%5D.md"),
        ("../c.md", "file:///docs.zip!/in/a.md", "file:///docs.zip!/c.md"),
        ("https://x.org/", "file:///docs/a.md", "https://x.org/"),
        ("file:///etc/passwd", "file:///docs/a.md", None),
        ("//host/share", "file:///docs/a.md", None),
        ("javascript:x", "file:///docs/a.md", None),
        ("file:///etc/passwd", "https://x.org/a", None),
        ("b.md", "https://x.org/a", "https://x.org/b.md"),
    ],
)
def test_files_link_to_files_beside_them_and_web_pages_never_to_files(
    raw_url: str, base: str, target: str | None
) -> None:
    assert link_target(raw_url, base) == target
