"""The pages for reading, as text: what they show, and what hostile rows and addresses cannot do to them."""

import asyncio
import csv
import io
import re
from html.parser import HTMLParser

import pytest

from board_factory import BOARD, FORMULA_NAME, HOSTILE_NAME, resampled, small_board, submit
from queue_factory import make_request
from run_factory import HOSTILE, make_run
from truegap.errors import UserError
from truegap.leaderboard import LocalStore
from truegap.leaderboard.details import Details, details_of, keep_details, read_details
from truegap.leaderboard.prompt_scores import PromptScore
from truegap.leaderboard.published_rows import published_rows
from truegap.leaderboard.site import Narrow, Pages, Site, parse, shelf
from truegap.leaderboard.site.listing import listing
from truegap.results.show import plain


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return small_board(tmp_path_factory.mktemp("store"))


@pytest.fixture(scope="module")
def pages(made):
    return Pages(made[0])


@pytest.fixture(scope="module")
def keys(made):
    return made[1]


def names(pages, query):
    """The models that a query's table shows, in their order."""
    sheet = listing(pages.shelf.rows(), parse(query)).sheet
    return [row[1].text for _, rows in sheet.groups for row in rows]


class Elements(HTMLParser):
    """Every element of a page with its attributes."""

    def __init__(self, html):
        super().__init__()
        self.found = []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))


def request(app, path, query="", *, method="GET", chunks=(b"",)):
    """Status, headers and body of one request to an ASGI app."""
    sent, waiting = [], list(chunks)

    async def receive():
        return {"type": "http.request", "body": waiting.pop(0), "more_body": bool(waiting)}

    async def send(message):
        sent.append(message)

    scope = {"type": "http", "method": method, "path": path, "query_string": query.encode(), "headers": []}
    asyncio.run(app(scope, receive, send))
    body = b"".join(each.get("body", b"") for each in sent[1:])
    return sent[0]["status"], {name.decode(): value.decode() for name, value in sent[0]["headers"]}, body


async def below(scope, receive, send):
    """An app that says what it was given."""
    body = (await receive())["body"]
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
    await send({"type": "http.response.body", "body": b"<html><head></head><body class='x'>below " + body})


def test_rows_of_the_papers_are_there_from_the_first_day(tmp_path):
    empty = Pages(LocalStore(tmp_path / "nothing"))
    shown = empty.document(parse("?q=LLaVA-1.5-7B&benchmark=coco-gender"))
    assert "published" in shown
    assert "-0.037" in shown
    assert all(row["rank"] is None and row["kind"] == "published" for row in published_rows())
    assert len({row["key"] for row in published_rows()}) == len(published_rows()) > 100


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("?q=READER person", ["person-reader"]),
        ("?kind=verified&kind=community", ["background-reader", "near-reader"]),
        ("?kind=local&benchmark=coco-gender", [FORMULA_NAME]),
        ("?size=1B to 10B&kind=community", ["near-reader"]),
        ("?type=dual-encoder&protocol=retrieval&q=near", ["near-reader"]),
        ("?type=endpoint", []),
        ("?size=above 10B&benchmark=synthetic", []),
        ("?q=.*", []),
    ],
)
def test_filters(pages, query, found):
    assert names(pages, query) == found


def test_what_intervals_do_not_separate_is_a_tie(pages):
    (_, rows), *_ = listing(pages.shelf.rows(), parse(f"?board={BOARD}")).sheet.groups
    assert [row[0].text for row in rows] == ["1", "2=", "2=", "4"]
    assert "shared by 2" in rows[1][0].title


def test_sorting_goes_both_ways_and_stays_within_a_board(pages):
    assert names(pages, f"?board={BOARD}&sort=bias")[1:] == ["background-reader", "near-reader", "person-reader"]
    assert names(pages, f"?board={BOARD}&sort=bias&desc=1")[:1] == ["person-reader"]
    assert names(pages, f"?board={BOARD}&sort=size&desc=1")[0] == "near-reader"
    assert names(pages, f"?board={BOARD}&sort=mean_delta")[-1] in ("background-reader", plain(HOSTILE_NAME, 120))
    both = listing(pages.shelf.rows(), parse("?kind=local&sort=model")).sheet.groups
    assert [board for board, _ in both] == [BOARD, "coco-gender 1.0.0, retrieval, max_skew@100"]
    # A paper's rows without a delta come last either way.
    for direction in ("", "1"):
        found = listing(
            pages.shelf.rows(), parse(f"?protocol=vqa&sort=delta_object&desc={direction}"), whole=True
        ).sheet
        for _, rows in found.groups:
            values = [row[2 + parse("").show.index("delta_object")].value[0] for row in rows]
            known = [value for value in values if value is not None]
            assert values[: len(known)] == sorted(known, reverse=bool(direction))


def test_columns_can_be_chosen(pages):
    shown = pages.document(parse("?show=bias&show=submitted&kind=local"))
    assert "Submitted" in shown
    assert "Mean Δ %</a>" not in shown
    assert "Mean Δ %</a>" in pages.document(parse("?kind=local"))


@pytest.mark.parametrize(
    "query",
    [
        "?tab=../../etc/passwd&sort=__class__&show=key&kind=<script>",
        "?start=99999999999999999999",
        "?start=-1&start=abc",
        "?" + "q=a&" * 5000,
        "?q=" + "a" * 100_000,
        "?model=%00%ff%fe&tab=model",
        "?tab=compare&a=x&b=%27%22%3E%3Csvg%20onload%3Dalert(1)%3E",
        "?tab=queue&log=../../../etc/passwd",
        "?board=%3Cscript%3Ealert(1)%3C/script%3E&tab=plane",
    ],
)
def test_hostile_addresses_are_views_like_others(pages, query):
    shown = pages.document(parse(query))
    assert {tag for tag, _ in Elements(shown).found if tag == "script"} == {"script"}
    assert sum(tag == "script" for tag, _ in Elements(shown).found) == 1
    assert "onload" not in {name for _, attributes in Elements(shown).found for name in attributes}
    assert "root:" not in shown


@pytest.mark.parametrize(
    "tab", ["", "?tab=plane", "?tab=model&model={hostile}", "?tab=compare&a={hostile}&b={formula}"]
)
def test_hostile_names_stay_text(pages, keys, tab):
    found = Elements(pages.document(parse(tab.format(**keys)))).found
    assert [attributes for tag, attributes in found if tag == "script"] == [{"src": "board/site.js", "defer": None}]
    assert not {name for _, attributes in found for name in attributes if name.startswith("on")}
    links = [attributes["href"] for _, attributes in found if "href" in attributes]
    assert all(link.startswith(("?", "board/", "#main", "data:,")) for link in links)
    assert [attributes["src"] for tag, attributes in found if tag == "img"] == []


def test_hostile_notes_and_reasons_stay_text(tmp_path):
    store = LocalStore(tmp_path)
    store.put_request(
        make_request(note="=1+1 <b>x</b>", user="ada", state="FAILED", reason=HOSTILE.split("\n")[0]), None
    )
    store.put_log(store.requests()[0].key, f"{HOSTILE}\n</pre><script>alert(4)</script>")
    shown = Pages(store).document(parse(f"?tab=queue&log={store.requests()[0].key}"))
    assert "1 FAILED" in shown
    assert sum(tag == "script" for tag, _ in Elements(shown).found) == 1
    assert not {"b", "img"} & {tag for tag, _ in Elements(shown).found}
    _, text = Pages(store).csv(parse("?csv=queue"))
    assert "'=1+1 <b>x</b>" in next(csv.reader(io.StringIO(text.split("\n", 1)[1])))


def test_no_cell_of_a_csv_is_a_formula(pages, keys):
    for query in ("?csv=rows", "?csv=configs&model={formula}", "?csv=questions&model={formula}"):
        _, text = pages.csv(parse(query.format(**keys)))
        lines = list(csv.reader(io.StringIO(text)))
        assert len({len(line) for line in lines}) == 1
        cells = [cell for line in lines[1:] for cell in line]
        assert not [cell for cell in cells if cell[:1] in "=+@\t\r" and cell]
        assert all(re.fullmatch(r"-?[\d.e-]*", cell) for cell in cells if cell.startswith("-"))
    assert f"'{FORMULA_NAME}" in {
        cell for line in csv.reader(io.StringIO(pages.csv(parse("?csv=rows"))[1])) for cell in line
    }


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_no_spreadsheet_finds_a_formula_however_it_splits_cells(tmp_path, delimiter):
    store = LocalStore(tmp_path)
    store.put_request(make_request(note="fine;=1+1", state="FAILED", reason="a;@x"), None)
    submit(store, "fine\t=1+1;=2+2\n=3+3")
    for query in ("?csv=queue", "?csv=rows"):
        _, text = Pages(store).csv(parse(query))
        cells = [cell for line in csv.reader(io.StringIO(text), delimiter=delimiter) for cell in line]
        assert not [cell for cell in cells if cell.lstrip('" ').startswith(("=", "@", "+"))]
    assert "fine =1+1,=2+2 =3+3" in text


def test_nobody_learns_where_folders_of_this_machine_lie(tmp_path):
    store, revision = LocalStore(tmp_path), f"sha256:{'a' * 64}"
    place = {"benchmark": "/home/ada/bench", "benchmark_revision": None}
    reason = "model /home/ada/my-clip: no weights; /home/ada/bench is fine"
    store.put_request(
        make_request("/home/ada/my-clip", revision=revision, reason=reason, state="FAILED", **place), None
    )
    pages = Pages(store)
    said = pages.document(parse("?tab=queue")) + pages.csv(parse("?csv=queue"))[1]
    assert "/home/ada" not in said
    assert "model my-clip: no weights; bench is fine" in said


class Remote:
    """A store that is no folder, and fails when it is told to."""

    def __init__(self, store):
        self.store, self.broken, self.asked = store, False, 0

    def __getattr__(self, name):
        def call(*arguments):
            self.asked += 1
            if self.broken:
                raise UserError("503")
            return getattr(self.store, name)(*arguments)

        return call


def test_a_hub_that_fails_takes_no_page_away_and_is_not_asked_by_every_visitor(tmp_path, monkeypatch):
    local = LocalStore(tmp_path)
    submit(local, "my-model")
    local.put_request(make_request(), None)
    store, moment = Remote(local), [0.0]
    monkeypatch.setattr(shelf.time, "monotonic", lambda: moment[0])
    pages = Pages(store)
    queue = pages.document(parse("?tab=queue"))
    asked = store.asked
    assert pages.document(parse("?tab=queue")) == queue
    assert store.asked == asked
    moment[0], store.broken = 1000.0, True
    assert pages.document(parse("?tab=queue")) == queue
    assert "my-model" in pages.document(parse("?tab=table"))
    assert store.asked > asked
    moment[0], store.broken = 2000.0, False
    local.put_request(make_request("org/newer"), None)
    assert "org/newer" in pages.document(parse("?tab=queue"))
    store.broken = True
    with pytest.raises(UserError, match="503"):
        Pages(store).document(parse("?tab=queue"))


def test_a_folders_queue_is_read_when_it_changed_and_not_for_every_visitor(tmp_path, monkeypatch):
    store, reads, first = LocalStore(tmp_path), [], make_request()
    read = store.requests
    monkeypatch.setattr(store, "requests", lambda: reads.append(1) or read())
    monkeypatch.setattr(shelf.time, "monotonic", lambda: 0.0)
    looked = Pages(store).shelf
    assert looked.requests() == []
    changed = first.model_copy(update={"note": "mine"})
    for request, expected in ((first, None), (changed, first), (first, changed)):
        assert store.put_request(request, expected)
        for _ in range(5):
            assert looked.requests() == [request]
    assert len(reads) == 4


def test_a_csv_holds_all_rows_of_its_view(pages):
    name, text = pages.csv(parse("?csv=rows&protocol=retrieval"))
    assert name == "truegap-rows.csv"
    assert len(text.splitlines()) == 1 + listing(pages.shelf.rows(), parse("?protocol=retrieval")).found
    with pytest.raises(UserError, match="no such table"):
        pages.csv(parse("?csv=everything"))


def test_the_model_page_shows_perturbations_ranks_and_questions(pages, keys):
    shown = pages.document(parse(f"?tab=model&model={keys['background-reader']}"))
    for text in ("background-strong", "Blurring the background (strong)", "a doctor", "2, shared by 2", "Compare with"):
        assert text in shown
    _, text = pages.csv(parse(f"?csv=configs&model={keys['background-reader']}"))
    ranks = {line["config"]: line["rank"] for line in csv.DictReader(io.StringIO(text))}
    assert (ranks["original"], ranks["background-strong"]) == ("2", "2")
    assert "Nothing here has this key" in pages.document(parse("?tab=model&model=0000"))


PROMPTS = {"a photo of a nurse": 0.25, "=<b>a pilot</b>": 0.5}


def test_the_model_page_shows_each_prompt(tmp_path):
    # given a row whose details hold two prompts, one of them hostile
    store = LocalStore(tmp_path)
    row = submit(store, "one")
    asked = [PromptScore(prompt=text, topic="", value=value, low=0.1, high=0.6) for text, value in PROMPTS.items()]
    keep_details(store, row.key, Details(prompts=asked))
    page = Pages(store)

    # when its page and its table are read
    shown = page.document(parse(f"?tab=model&model={row.key}"))
    _, text = page.csv(parse(f"?csv=questions&model={row.key}"))

    # then they are there, the largest first, as text
    assert "a photo of a nurse" in shown
    assert "<b>" not in shown
    listed = {line["question"]: line["gap"] for line in csv.DictReader(io.StringIO(text))}
    assert [each for each in listed if "a " in each] == ["'=<b>a pilot</b>", "a doctor", "a photo of a nurse"]
    assert float(listed["a photo of a nurse"]) == 0.25


def test_a_page_says_how_many_questions_it_leaves_out(tmp_path):
    store = LocalStore(tmp_path)
    row = submit(store, "one")
    many = [PromptScore(prompt=f"prompt {n}", topic="", value=n, low=None, high=None) for n in range(500)]
    keep_details(store, row.key, Details(prompts=many))
    shown = Pages(store).document(parse(f"?tab=model&model={row.key}"))
    assert "The 400 questions of" in shown
    assert ("prompt 499" in shown, "prompt 99<" in shown) == (True, False)


def test_two_models_are_compared_on_the_same_resamples(pages, keys):
    def said(one, other):
        return pages.document(parse(f"?tab=compare&a={keys.get(one, one)}&b={keys.get(other, other)}"))

    assert "background-reader is clearly less biased" in said("background-reader", "person-reader")
    assert "the row came without its answers" not in said("background-reader", "person-reader")
    assert "is not clear" in said("background-reader", "near-reader")
    assert "a row came without its answers" in said("background-reader", "hostile")
    assert "they answered different questions" in said("background-reader", "formula")
    paper = [row["key"][:16] for row in published_rows()[:8]]
    assert "papers print no answers" in said(paper[0], next(key for key in paper[1:] if key != paper[0]))


def test_resamples_of_other_images_are_never_paired(tmp_path):
    store = LocalStore(tmp_path)
    rows = [submit(store, "one"), submit(store, "two", bias=0.1), submit(store, "three", bias=0.2)]
    resampled(store, rows[0])
    resampled(store, rows[1], answered="other images")
    keep_details(store, rows[2].key, Details(answered="same", resampled="AAAA"))
    page = Pages(store)
    shown = page.document(parse(f"?tab=compare&a={rows[0].key}&b={rows[1].key}"))
    assert "did not answer about the same images" in shown
    assert "resamples of a row are broken" in page.document(parse(f"?tab=compare&a={rows[0].key}&b={rows[2].key}"))


def test_a_run_without_answers_says_so_and_names_no_path(tmp_path):
    details = details_of(make_run(tmp_path / "secret-place"))
    assert details.resampled == ""
    assert details.not_resampled
    assert "secret-place" not in details.model_dump_json()
    store = LocalStore(tmp_path / "store")
    store.put_details("../../escaped", "{")
    assert not (tmp_path / "escaped.json").exists()
    assert read_details(store, "../../escaped") is None


def test_only_pictures_are_given_as_pictures(tmp_path):
    store = LocalStore(tmp_path)
    row = submit(store, "one")
    keep_details(store, row.key, Details(pictures={"a": "/9j/4AAQ", "b": "PHNjcmlwdD4=", "c": "no base64"}))
    site = Site(below, Pages(store))
    status, headers, body = request(site, "/board/picture", f"model={row.key}&q=a")
    assert (status, headers["content-type"], body[:3]) == (200, "image/jpeg", b"\xff\xd8\xff")
    assert headers["x-content-type-options"] == "nosniff"
    assert [request(site, "/board/picture", f"model={row.key}&q={name}")[0] for name in "bcd"] == [404] * 3


def test_pages_allow_no_script_but_their_own(pages):
    site = Site(below, pages)
    for path in ("/", "/board/view", "/board/table.csv"):
        status, headers, _ = request(site, path, "csv=rows")
        assert status == 200
        assert "script-src 'self';" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]
    assert request(site, "/board/../app.py")[0] == 404
    assert request(site, "/elsewhere")[2].endswith(b"below ")
    assert request(site, "/", "tab=submit")[2].startswith(b'<html><head><link rel="stylesheet"')
    assert b"attachment" in request(site, "/board/cite.bib")[1]["content-disposition"].encode()


def test_bibtex_holds_what_the_rows_need(pages, keys):
    own = pages.bibtex(parse(f"?model={keys['person-reader']}"))
    assert own.startswith("@software{truegap,")
    assert "VisoGender" not in own
    assert "VisoGender: A dataset" in pages.bibtex(parse("?benchmark=visogender"))


def test_nothing_large_is_taken_and_nothing_uploaded():
    small = Narrow(below)
    assert request(small, "/gradio_api/upload", method="POST", chunks=(b"x",))[0] == 403
    assert request(small, "/gradio_api/upload/", method="POST", chunks=(b"x",))[0] == 403
    assert request(small, "/gradio_api/queue/join", method="POST", chunks=(b"x" * 40_000,) * 3)[0] == 413
    assert request(small, "/gradio_api/queue/join", method="POST", chunks=(b"a", b"b"))[2].endswith(b"below ab")


def test_a_newer_table_is_shown_at_once(tmp_path):
    store = LocalStore(tmp_path)
    pages = Pages(store)
    assert names(pages, "?kind=local") == []
    submit(store, "newcomer")
    assert names(pages, "?kind=local") == ["newcomer"]


def test_every_field_of_a_page_has_a_label(pages, keys):
    for query in ("", "?tab=plane", "?tab=compare", f"?tab=model&model={keys['near-reader']}"):
        shown = pages.document(parse(query))
        assert "<html lang=" in shown
        found = Elements(shown).found
        labelled = {attributes.get("for") for tag, attributes in found if tag == "label"}
        for tag, attributes in found:
            if tag == "select" or (tag == "input" and attributes["type"] == "search"):
                assert attributes["id"] in labelled, attributes
        headings = re.findall(r"<h(\d)", shown)
        assert headings[0] == "1"
        assert headings.count("1") == 1
