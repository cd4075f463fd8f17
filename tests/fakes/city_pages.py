"""The pages of a city that does not exist: departments, minutes, budgets, contacts, services, documents."""

import json
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from itertools import islice, product

DEPARTMENTS = ("Finance", "Parks", "Police", "Fire", "Water", "Libraries", "Planning", "Transit", "Housing")
BOARDS = ("City Council", "Planning Board", "School Board", "Library Board", "Parks Board")
SERVICES = ("Trash pickup", "Building permits", "Parking", "Marriage license", "Snow removal", "Dog license")
YEARS = range(2026, 1990, -1)
FORBIDDEN = "/private/intranet/"
CALENDAR = "/calendar/"

Nav = Sequence[tuple[str, str]]  # path and label
NAV: Nav = (
    ("/", "Home"),
    ("/departments/", "Departments"),
    ("/minutes/", "Meeting minutes"),
    ("/budgets/", "Budgets"),
    ("/contacts/", "Contacts"),
    ("/services/", "Services"),
    (CALENDAR, "Calendar"),
)
FOOTER: Nav = (("/accessibility/", "Accessibility"), ("/privacy/", "Privacy"), (FORBIDDEN, "Staff only"))
OUTSIDE: Nav = (
    ("https://www.state.example/", "The state"),
    ("mailto:clerk@city.example", "Write to the clerk"),
    ("tel:+15550100", "Call us"),
    ("javascript:void(0)", "Larger letters"),
)
_LEAST = 60  # pages without which it is no city

Parts = tuple[str, str, Nav, Nav]  # title, text, links that are shown, links that only scripts know


def slug(name: str) -> str:
    """The part of an address that a name becomes."""
    return name.lower().replace(" ", "-")


def parts_of(number: int) -> Mapping[str, Parts]:
    """What each of `number` pages says and links to, by path; the same for the same number."""
    if number < _LEAST:
        raise ValueError(f"a city has {_LEAST} pages or more, not {number}")
    minutes = [*islice(_minutes(), number - len(_fixed([])))]
    return _fixed(minutes)


def _fixed(minutes: list[tuple[str, str]]) -> dict[str, Parts]:
    """Every page but the minutes is there whatever the size."""
    departments = [(f"/departments/{slug(name)}/", name) for name in DEPARTMENTS]
    budgets = [(f"/budgets/{year}/", f"Budget {year}") for year in YEARS[:10]]
    services = [(f"/services/{slug(name)}/", name) for name in SERVICES]
    pages: dict[str, Parts] = {
        "/": ("City of Larch", "Welcome to Larch, a city by the lake.", (), ()),
        "/departments/": ("Departments", "Who does what in the city hall.", departments, ()),
        "/minutes/": ("Meeting minutes", "What the boards decided, newest first.", minutes, ()),
        "/budgets/": ("Budgets", "Adopted budgets of the city, by year.", budgets, ()),
        "/contacts/": ("Contacts", "Telephone numbers of all departments.", departments, ()),
        "/services/": ("Services", "Pick a service from the list that appears here.", (), services),
        "/accessibility/": ("Accessibility", "How this site can be used by everyone.", (), ()),
        "/privacy/": ("Privacy", "What this site remembers of its visitors, which is nothing.", (), ()),
    }
    for path, name in departments:
        below = [(f"{path}contact/", f"Contact {name}"), (f"{path}fees/", f"Fees of {name}")]
        pages[path] = (f"{name} Department", f"What the {name} Department is there for.", below[:1], below[1:])
        pages[below[0][0]] = (f"Contact {name}", f"Write to {name}, or call 555-01{len(name):02}.", (), ())
        pages[below[1][0]] = (f"Fees of {name}", f"What {name} charges, and who pays less.", (), ())
    for path, title in budgets:
        files = [(f"/files/{slug(title)}.pdf", f"{title} (PDF)")]
        pages[path] = (title, f"{title} as the council adopted it.", files, ())
    for path, title in services:
        pages[path] = (title, f"How to apply for {title.lower()} in Larch.", (), ())
    for path, title in minutes:
        pages[path] = (title, f"Minutes: {title}. The board met and adjourned.", (), ())
    return pages


def _minutes() -> Iterator[tuple[str, str]]:
    for year, month, board in product(YEARS, range(12, 0, -1), BOARDS):
        yield f"/minutes/{slug(board)}-{year}-{month:02}/", f"{board}, {month:02}/{year}"


def page_html(parts: Parts, nav: Nav, newer: bool) -> str:
    """A page as the server sends it; `newer` says how Drupal writes its settings."""
    title, text, displayed, hidden = parts
    body = f"<h1>{escape(title)}</h1><p>{escape(text)}</p><ul>{_items(displayed)}</ul>"
    return (
        f'<!doctype html><html lang="en"><head><title>{escape(title)} | City of Larch</title>'
        f"{_settings(hidden, newer) if hidden else ''}</head><body>"
        f"<nav><ul>{_items(nav)}</ul></nav><main>{body}</main>"
        f"<footer><ul>{_items(FOOTER)}{_items(OUTSIDE)}</ul></footer></body></html>"
    )


def _items(links: Nav) -> str:
    return "".join(f'<li><a href="{escape(path)}">{escape(label)}</a></li>' for path, label in links)


def _settings(links: Nav, newer: bool) -> str:
    """Links as Drupal 8 and later, or Drupal 7, hand them to a script, among what is no link."""
    system = {"baseUrl": "/", "ajaxPath": "/views/ajax", "edit": "/node/%/edit", "logo": "/themes/larch/logo.svg"}
    items = [{"title": label, "url": path} for path, label in links]
    data = json.dumps({"path": system, "larchCards": {"items": items}}).replace("/", "\\/")
    if newer:
        return f'<script type="application/json" data-drupal-selector="drupal-settings-json">{data}</script>'
    return f"<script>jQuery.extend(Drupal.settings, {data});</script>"


def calendar_html(page: int, nav: Nav) -> str:
    """One page of a calendar that never ends."""
    links = [(f"{CALENDAR}?page={page + 1}", "Next"), (f"{CALENDAR}?page={page + 1}&view=list", "As a list")]
    return page_html((f"Calendar, page {page}", f"Nothing happens in week {page}.", links, ()), nav, newer=True)


def pdf(title: str) -> bytes:
    """A document of one page that says its title."""
    drawn = f"BT /F1 18 Tf 72 700 Td ({title}: all figures in dollars.) Tj ET".encode()
    objects = (
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R"
        b" /Resources << /Font << /F1 5 0 R >> >> >>",
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(drawn), drawn),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    )
    whole, places = b"%PDF-1.4\n", []
    for number, each in enumerate(objects, 1):
        places.append(len(whole))
        whole += b"%d 0 obj\n%s\nendobj\n" % (number, each)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    end = b"trailer << /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, len(whole))
    return whole + b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1) + table + end
