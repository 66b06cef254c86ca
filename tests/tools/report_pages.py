"""A report's HTML in tests: parsing, comparing numbers, and a browser that renders it."""

import html.parser
import shutil
import subprocess

NAMES = ("x/<script>document.title=1</script>", "a/same&amp;", "b/same&amp;", "imagenet_c/fog", "noc/hue", "x/last")
NUMBER = r"([-+]?\d*\.?\d+)"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")


def find_browser():
    """Path of a Chromium, or None."""
    return next(filter(None, map(shutil.which, BROWSERS)), None)


def browse(found, profile, page, *options):
    """Prints a page by headless Chromium without a network."""
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--virtual-time-budget=5000"]
    flags += ["--host-resolver-rules=MAP * ~NOTFOUND", f"--user-data-dir={profile}", *options, page.as_uri()]
    return subprocess.run([found, *flags], capture_output=True, text=True, check=True, timeout=200).stdout


def plain(text):
    return text.replace("\N{NO-BREAK SPACE}", " ").replace("\N{MINUS SIGN}", "-")


class Page(html.parser.HTMLParser):
    """Elements of a page as (tag, attributes, text within), in order of their start."""

    def __init__(self, text):
        super().__init__()
        self.found, self._open = [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        element = [tag, {key: plain(value or "") for key, value in attributes}, ""]
        self.found.append(element)
        if tag not in ("meta", "img", "br", "link"):
            self._open.append(element)

    def handle_endtag(self, tag):
        while self._open and self._open.pop()[0] != tag:
            pass

    def handle_data(self, data):
        for element in self._open:
            element[2] += plain(data)

    def title(self):
        return self.all("title")[0][2]

    def all(self, tag, **attributes):
        return [
            e for e in self.found if e[0] == tag and all(e[1].get(k.rstrip("_")) == v for k, v in attributes.items())
        ]

    def text(self, tag, **attributes):
        return " ".join(" ".join(e[2] for e in self.all(tag, **attributes)).split())

    def rows(self, **attributes):
        """Lists the texts of the cells of each table with these attributes, a list for each row."""
        tables = []
        for table in self.all("table", **attributes):
            tables.append([])
            for tag, _, text in self.found[self.found.index(table) + 1 :]:
                if tag in ("table", "section"):
                    break
                if tag == "tr":
                    tables[-1].append([])
                elif tag in ("td", "th"):
                    tables[-1][-1].append(" ".join(text.split()))
        return tables

    def within(self, name, tag, order=0):
        """Elements in the drawing of a figure; `order` 1 is the second drawing of a matrix."""
        start = next(k for k, e in enumerate(self.found) if e[1].get("id") == f"figure-{name}")
        drawings = [k for k in range(start, len(self.found)) if self.found[k][0] == "svg"][: order + 2]
        ends = {"svg", "figure", "section"}
        begin = drawings[order]
        stop = next((k for k in range(begin + 1, len(self.found)) if self.found[k][0] in ends), None)
        return [e for e in self.found[begin:stop] if e[0] == tag]

    def titles(self, name, order=0):
        """Titles of the parts of a figure."""
        return self.within(name, "title", order)


def shows(text, value):
    """Tells whether a printed number is the value, rounded at its last digit."""
    places = len(text.split(".")[1]) if "." in text else 0
    return abs(float(text) - value) <= 0.5001 * 10.0**-places
