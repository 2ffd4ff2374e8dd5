"""The cluster in the page's live view, in a browser: a real one that loses a machine, and one made up for its figures."""
import contextlib
import json
import re
import threading
import time
import unittest

from cluster_worker import Worker, even_cut, spread_head
from models import NUM_LAYERS, TINY_MODEL
from page_test import LOW_CONTRAST, PHONE, BrowserTest, expect, setUpModule  # noqa: F401, the browser
from server import SLACK

COLUMNS = ["Machine", "Holds", "Memory", "Busy", "Its time", "Round trip", "Sent", "Received"]
RATE = re.compile(r"^[1-9][\d.]*\sk?B/s$")  # of bytes, and not none


@contextlib.contextmanager
def load(server):
    """One short request after the other, so that machines always have something to do."""
    enough = threading.Event()

    def ask():
        while not enough.is_set() and server.post("/v1/completions", {"prompt": "Once", "max_tokens": 20}).status == 200:
            pass
    thread = threading.Thread(target=ask)
    thread.start()
    try:
        yield
    finally:
        enough.set()
        thread.join()


def row(page, machine):
    return page.locator("#machines tbody tr").nth(machine)


def cell(page, machine, column):
    return row(page, machine).locator(":scope > *").nth(COLUMNS.index(column))


def large(page, machine, column):
    return cell(page, machine, column).locator(":scope > span:not(.bar)")


class RealClusterTest(BrowserTest):
    @classmethod
    def setUpClass(cls):
        cls.machine = Worker()
        cls.addClassCleanup(cls.machine.close)
        cls.server = spread_head(cls.model, [cls.machine], env=cls.env)

    def test_each_machine_has_a_row(self):
        page = self.page
        with load(self.server):
            page.click("#tab-live")
            expect(page.locator("#machines tbody tr")).to_have_count(2)
            expect(page.get_by_role("columnheader")).to_have_text(COLUMNS)
            nodes = self.server.get("/v1/cluster").json()["nodes"]
            first = 0
            for i, layers in enumerate(even_cut(NUM_LAYERS[TINY_MODEL], 2)):
                expect(large(page, i, "Machine")).to_have_text(["head", self.machine.address][i])
                expect(cell(page, i, "Machine")).to_contain_text("answers")
                expect(large(page, i, "Holds")).to_have_text(f"{layers} layers ({first}–{first + layers - 1})")
                first += layers
                others = [name for name in ("embedding", "output") if nodes[i]["units"][name]]
                expect(cell(page, i, "Holds").locator("small")).to_have_text(", ".join(others))
                expect(large(page, i, "Memory")).to_have_text(re.compile(r"^[1-9][\d.]* [MG]B of 1\.07 GB$"))
                expect(large(page, i, "Busy")).to_have_text(re.compile(r"^\d+(\.\d)? %$"))
                expect(large(page, i, "Its time")).to_have_text(
                    re.compile(", ".join(rf"{name}\s[\d.]+\s%" for name in ("computing", "converting", "sending", "waiting"))))
                expect(large(page, i, "Sent")).to_have_text(RATE)
            expect(large(page, 1, "Received")).to_have_text(RATE)
            expect(large(page, 0, "Round trip")).to_have_text("–")
            expect(large(page, 1, "Round trip")).to_have_text(re.compile(r"^[\d.]+ ms$"))
            expect(page.locator("#pipeline")).to_have_text("running")
            expect(page.locator("#in-flight")).to_have_text(re.compile(r"^\d+ of [1-9]\d*$"))
            expect(page.locator("#imbalance")).to_have_text(re.compile(r"^[12]\.\d\d$"))
            expect(page.locator("#placement")).to_have_text(self.server.get("/v1/cluster").json()["placement"])
            expect(page.locator("#cluster-fault")).to_be_hidden()

    def test_a_machine_that_is_lost_is_told(self):
        page, fault = self.page, self.page.locator("#cluster-fault")
        page.click("#tab-live")
        expect(cell(page, 1, "Machine")).to_contain_text("answers")
        losses = int(page.locator("#losses").text_content())
        self.machine.kill()
        expect(fault).to_contain_text(f"The pipeline stands still: {self.machine.address} does not answer.")
        expect(page.locator("#pipeline")).to_have_text("stands still")
        expect(cell(page, 1, "Machine")).to_contain_text("does not answer")
        expect(large(page, 1, "Busy")).to_have_text("–")
        expect(cell(page, 0, "Machine")).to_contain_text("answers")
        expect(page.locator("#losses")).to_have_text(str(losses + 1))
        self.machine.start()
        expect(fault).to_be_hidden(timeout=30_000 * SLACK)
        expect(page.locator("#pipeline")).to_have_text("running")
        expect(cell(page, 1, "Machine")).to_contain_text("answers; ")


def node(name, first, layers, **other):
    made = {"name": name, "up": True, "isa": "avx512", "threads": 8,
            "units": {"embedding": first == 0, "first_layer": first, "num_layers": layers, "layers": "layers in words",
                      "output": False},
            "memory": {"limit_bytes": 16e9, "weight_bytes": 1.5e9, "kv_cache_bytes": 500e6}, "busy_share": 0.5,
            "seconds": {"compute": 60, "serialise": 1, "wire": 2, "wait": 10},
            "link": {"sent_bytes": 1000, "received_bytes": 5000, "round_trip_seconds": 0.00025, "missed_heartbeats": 0}}
    return {**made, **other}


def cluster(seconds, *nodes, **other):
    return {"object": "cluster", "up": True, "placement": "the slowest stage takes 5.1 ms at 8 rows, the best of 91 cuts",
            "seconds": seconds, "steps": 1, "tokens": 1, "steps_in_flight": 2, "steps_in_flight_limit": 3, "imbalance": 1,
            "losses": 0, "nodes": nodes, **other}


class MadeUpClusterTest(BrowserTest):
    """One after the other of these answers, and the last for ever."""
    BEFORE = cluster(100, node("head", 0, 10), node("a-machine-with-a-long-name.example.org:8100", 10, 1))
    AFTER = cluster(110, node("head", 0, 10, busy_share=(0.5 * 100 + 8) / 110,
                              seconds={"compute": 69, "serialise": 1.05, "wire": 2.5, "wait": 10}),
                    node("a-machine-with-a-long-name.example.org:8100", 10, 1, busy_share=(0.5 * 100 + 2) / 110,
                         seconds={"compute": 63, "serialise": 1, "wire": 2, "wait": 17},
                         link={"sent_bytes": 26_001_000, "received_bytes": 45_000, "round_trip_seconds": 0.0234,
                               "missed_heartbeats": 0}))
    DOWN = cluster(110, BEFORE["nodes"][0], {**BEFORE["nodes"][1], "up": False}, up=False, losses=1)

    def show(self, *answers, **options):
        """The live view, with a clock that stands still, of a page on which these are the answers."""
        page = self.open_page(**options)
        page.clock.install()
        page.clock.pause_at(time.time() + 3600)
        self.asked = []
        answers = list(answers)

        def answer(route):
            self.asked.append(route.request.url.rpartition("/")[2])
            if self.asked[-1] == "metrics":
                return route.fulfill(body='headrace_node_up{node="head"} 1\nheadrace_node_up{node="other"} 1\n')
            return route.fulfill(body=json.dumps(answers.pop(0) if len(answers) > 1 else answers[0]))
        page.route(re.compile("/metrics$|/v1/cluster$"), answer)
        page.click("#tab-live")
        expect(page.locator("#machines tbody tr")).to_have_count(2)
        return page

    def test_half_layers_are_shown_in_words(self):
        page = self.show(cluster(100, node("head", 0, 9.5), node("other", 9.5, 1)))
        for i in range(2):
            expect(large(page, i, "Holds")).to_have_text("layers in words")

    def test_times_and_bytes_are_of_late(self):
        page = self.show(self.BEFORE, self.AFTER)
        expect(large(page, 0, "Busy")).to_have_text("–")
        page.clock.run_for(1000)
        for column, texts in {
                "Holds": ["10 layers (0–9)", "1 layer (10)"],
                "Memory": ["2.00 GB of 16.0 GB"] * 2,
                "Busy": ["80 %", "20 %"],
                "Its time": ["computing 90 %, converting 0.5 %, sending 5.0 %, waiting 0.0 %",
                             "computing 30 %, converting 0.0 %, sending 0.0 %, waiting 70 %"],
                "Round trip": ["0.25 ms", "23 ms"], "Sent": ["0 B/s", "2.60 MB/s"], "Received": ["0 B/s", "4.00 kB/s"]}.items():
            for i, text in enumerate(texts):
                expect(large(page, i, column)).to_have_text(text)
        expect(page.locator("#in-flight")).to_have_text("2 of 3")
        expect(page.locator("#imbalance")).to_have_text("1.50")
        widths = [bar["width"] for bar in map(lambda i: row(page, i).locator(".bar > span").bounding_box(), range(2))]
        self.assertAlmostEqual(widths[0] / widths[1], 4, delta=0.2)

    def test_a_pipeline_that_began_again_has_no_times_of_before(self):
        page = self.show(self.AFTER, cluster(3, *self.BEFORE["nodes"], losses=1))
        page.clock.run_for(1000)
        expect(page.locator("#losses")).to_have_text("1")
        expect(large(page, 0, "Busy")).to_have_text("–")

    def test_it_is_asked_as_often_as_the_rest_and_not_unseen(self):
        page = self.show(self.BEFORE)
        for _ in range(3):
            with page.expect_response("**/v1/cluster"):
                page.clock.run_for(1000)
        self.assertEqual(self.asked, ["metrics", "cluster"] * 4)
        page.evaluate("Object.defineProperty(document, 'hidden', {configurable: true, get: () => true})")
        page.clock.run_for(5000)
        self.assertEqual(len(self.asked), 8)
        page.evaluate("delete document.hidden")
        page.click("#tab-chat")
        page.clock.run_for(5000)
        self.assertEqual(len(self.asked), 8)
        with page.expect_response("**/v1/cluster"):
            page.click("#tab-live")

    def test_look(self):
        """Contrast, room on a phone, and a table for screen readers there, too; with a machine that is lost."""
        for scheme in ("light", "dark"):
            page = self.show(self.DOWN, color_scheme=scheme)
            for size in ({"width": 1200, "height": 800}, {"width": 800, "height": 800}, PHONE):
                page.set_viewport_size(size)
                with self.subTest(scheme=scheme, **size):
                    seen, low = page.evaluate(LOW_CONTRAST)
                    self.assertEqual(low, [])
                    self.assertGreater(seen, 50)
                    self.assertEqual(page.evaluate("document.documentElement.scrollWidth"), size["width"])
                    self.assertLessEqual(page.evaluate("document.getElementById('view-live').scrollWidth"), size["width"])
                    for found in page.locator("#machines :is(th, td) > *").all():
                        box = found.bounding_box()
                        self.assertTrue(box is None or box["x"] + box["width"] <= size["width"], (found.text_content(), box))
                    roles = [each.get("role", {}).get("value") for each in
                             page.context.new_cdp_session(page).send("Accessibility.getFullAXTree")["nodes"]]
                    for role, number in (("table", 1), ("row", 3), ("columnheader", 8), ("rowheader", 2), ("cell", 14)):
                        self.assertEqual(roles.count(role), number, role)
            expect(page.get_by_role("alert")).to_contain_text("a-machine-with-a-long-name.example.org:8100 does not answer")


if __name__ == "__main__":
    unittest.main()
