"""What a reader sees first, on every kind of page."""

import re
from xml.etree import ElementTree

import pytest
from hostile import MARK, TEXTS, hostile_document

import calibrant as cal
from calibrant.core.document import plain
from calibrant.report import render_html, render_text
from calibrant.report.answers import claims_of, headline, source_name
from calibrant.report.charts import answer_of, charts_of
from calibrant.report.charts.draw import draw
from calibrant.report.charts.svg import cut_names, standalone
from calibrant.report.page import first_screen
from documents import KINDS, WITHOUT_PICTURE, document_of

WORDS_BEFORE_PICTURE = 60


def screen_of(kind):
    return first_screen(plain(document_of(kind)))


@pytest.mark.parametrize("kind", sorted(set(KINDS) - WITHOUT_PICTURE))
@pytest.mark.parametrize("wide", [True, False])
def test_every_kind_has_one_picture_that_is_well_formed(kind, wide):
    svg = draw(screen_of(kind).chart, wide=wide)
    root = ElementTree.fromstring(svg)
    assert root.attrib["role"] == "img"
    assert root.attrib["aria-label"]
    width, height = map(float, root.attrib["viewBox"].split()[2:])
    assert width == (350 if not wide else width)
    for mark in root.iter():
        for name in ("x", "x1", "x2", "cx"):
            if name in mark.attrib:
                assert -30 <= float(mark.attrib[name]) <= width + 30, (kind, mark.attrib)
        for name in ("y", "y1", "y2", "cy"):
            if name in mark.attrib:
                assert -30 <= float(mark.attrib[name]) <= height + 30, (kind, mark.attrib)


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_few_words_stand_above_the_picture(kind):
    screen = screen_of(kind)
    words = [screen.title, *screen.warnings, screen.sentence]
    words += [screen.badge.words] if screen.badge else []
    assert len(" ".join(words).split()) <= WORDS_BEFORE_PICTURE


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_the_first_sentence_is_a_claim_of_the_document(kind):
    document = plain(document_of(kind))
    if not document.get("claims"):
        pytest.skip("this kind makes no claims")
    texts = [claim["text"] for claim in document["claims"]]
    # How sure one is may follow below; a plan opens with the labels that it is about.
    texts += [
        re.sub(r" \((95 % interval|[\d.]+(?: %)? to) [^()]*\)", "", text, count=1) for text in texts
    ]
    texts += ["Knowing the calibration error within"] if kind == "plan" else []
    sentence = screen_of(kind).sentence
    assert any(text.startswith(sentence) or sentence.startswith(text) for text in texts)
    chart = answer_of(document)
    assert chart is None or sentence != chart.title
    # The headline of labels is a plain number; its interval stands below.
    assert not re.search(r"\(\d+ % to|interval", sentence)


def test_the_badge_says_how_many_of_the_confidences_it_is_about():
    badge = screen_of("audit").badge
    assert (badge.tone, badge.words) == ("over_confident", "over-confident, both confidences")
    assert badge.symbol == "▲"


def test_claims_about_everything_come_first_and_then_the_largest():
    claims = claims_of(plain(document_of("audit")))
    first, second, _ = headline(claims, 3)
    assert first.startswith("Both models")
    assert "by 18 points" in second


def test_a_model_that_is_never_right_is_a_warning_and_the_first_claim():
    rows = {
        "model": ["good"] * 200 + ["mute-1"] * 200,
        "question_id": [f"q{i}" for i in range(200)] * 2,
        "confidence": [0.9, 0.7, 0.8, 0.6, 0.95, 0.75, 0.85, 0.65] * 50,
        "correct": [1, 0] * 100 + [0] * 200,
    }
    document = cal.audit(rows, resamples=50).to_dict()
    screen = first_screen(plain(document))
    assert "mute-1 is never right" in screen.warnings[0]
    page = render_html([document])
    assert page.index('class="warning"') < page.index("<h1")
    for text in (
        page,
        render_text(document, width=100, full=True),
        render_text(document, width=80),
    ):
        assert "mute-1 says" in " ".join(text.split())


def test_a_page_of_many_documents_says_what_each_of_them_found():
    documents = [plain(document_of(kind)) for kind in ("audit", "groups", "decide")]
    screen = first_screen(documents[0], beside=documents[1:])
    assert [finding.kind for finding in screen.findings] == ["groups", "decide"]
    for finding in screen.findings:
        own = next(d for d in documents if d["schema"].startswith(f"calibrant.{finding.kind}/"))
        claim = next(c for c in own["claims"] if c["text"] == finding.text)
        assert claim["outcome"] == "shown"
    page = render_html(documents)
    for finding in screen.findings:
        number = [d["schema"].split(".")[1].split("/")[0] for d in documents].index(finding.kind)
        assert f'href="#{finding.kind}-{number}" class="to-part"' in page
        assert f'id="{finding.kind}-{number}"' in page
    assert "decide" not in screen.step[1]


def test_no_place_of_the_machine_is_on_the_first_screen():
    document = {**plain(document_of("audit")), "source": "/home/somebody/secret/my run.parquet"}
    screen = first_screen(document)
    assert "Audit of my run" in screen.title
    assert source_name(document) == "my run"
    top = render_html([document]).split('id="provenance"')[0]
    assert "/home/somebody" not in top


def test_names_stay_apart_when_they_are_cut():
    names = [f"Meta-Llama-3.1-{size}-Instruct-Turbo" for size in ("405B", "70B", "8B")]
    short = cut_names(names, 150)
    assert len(set(short.values())) == 3
    alike = [f"a-very-long-common-beginning-of-a-name-{i}" for i in range(3)]
    assert len(set(cut_names(alike, 120).values())) == 3


def test_hostile_names_are_text_in_every_picture():
    document = plain(hostile_document())
    for chart in charts_of(document):
        for svg in (draw(chart), draw(chart, wide=False), standalone(draw(chart))):
            assert_inert(svg)
    assert MARK in TEXTS[0]


def assert_inert(svg):
    tags = {element.tag.rpartition("}")[2] for element in ElementTree.fromstring(svg).iter()}
    assert tags <= {"svg", "g", "title", "text", "rect", "path", "circle", "polygon", "polyline",
                    "style"}  # fmt: skip
    assert "onerror=" not in re.sub(r"&#x27;|&lt;.*?&gt;", "", svg)


def test_the_ring_of_a_cascade_stands_where_its_sentence_says():
    """The chosen setting, and not the most accurate one of its rule."""
    document = plain(document_of("cascade"))
    promise = document["results"][0]["policy"]["promise"]
    rings = []
    for cost in (0.25, 0.5, 1.0):
        promise["relative_cost"] = {"value": cost}
        root = ElementTree.fromstring(draw(answer_of(document)))
        (ring,) = [part for part in root.iter() if part.attrib.get("class") == "ring"]
        rings.append(float(ring.attrib["cx"]))
    first, second, third = rings
    assert third - second == pytest.approx(2 * (second - first), abs=0.3)
    assert second > first
