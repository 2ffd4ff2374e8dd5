"""The page in a browser: chat and live view, by mouse and by keyboard alone, for screen readers, light, dark, on a phone."""
import functools
import json
import re
import shutil
import time
import unittest

from models import TINY_MODEL
from server import SLACK, Server, ServerTest, keys_file

try:
    from playwright.sync_api import expect, sync_playwright
except ImportError:
    raise unittest.SkipTest("the playwright package is not there: scripts/test installs it into build/python") from None

CHROMIUM = shutil.which("chromium")
PAUSE_MS = 20  # before each step: the tiny model would have answered before anyone can look
PHONE = {"width": 360, "height": 700}

# What the page shows with too little contrast, after WCAG 2.1: [ratio, text] of each text that is in sight.
LOW_CONTRAST = """() => {
  const parse = (text) => { const [r, g, b, a = 1] = text.match(/[\\d.]+/g).map(Number); return {rgb: [r, g, b], a}; };
  const over = (top, below) => top.rgb.map((c, i) => c * top.a + below[i] * (1 - top.a));
  const luminance = (rgb) => rgb.map((c) => c / 255).map((c) => c <= .04045 ? c / 12.92 : ((c + .055) / 1.055) ** 2.4)
    .reduce((sum, c, i) => sum + c * [.2126, .7152, .0722][i], 0);
  const behind = (element) => {
    if (!element) return [255, 255, 255];
    const own = parse(getComputedStyle(element).backgroundColor);
    return own.a === 1 ? own.rgb : over(own, behind(element.parentElement));
  };
  const ratio = (element, color) => {
    const ground = behind(element), [a, b] = [luminance(over(parse(color), ground)), luminance(ground)];
    return (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
  };
  const found = [], walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  let seen = 0;
  const check = (element, color, text) => {
    seen += 1;
    const value = ratio(element, color);
    if (value < 4.5) found.push([value, text]);
  };
  for (let node; (node = walker.nextNode());) {
    if (node.textContent.trim() && node.parentElement.checkVisibility({visibilityProperty: true})) {
      check(node.parentElement, getComputedStyle(node.parentElement).color, node.textContent);
    }
  }
  for (const field of document.querySelectorAll("input, textarea")) {
    if (field.checkVisibility()) check(field, getComputedStyle(field, "::placeholder").color, field.placeholder);
  }
  return [seen, found];
}"""


def setUpModule():
    global BROWSER
    if not CHROMIUM:
        raise unittest.SkipTest("there is no chromium: scripts/test installs it")
    expect.set_options(timeout=10_000 * SLACK)
    playwright = sync_playwright().start()
    unittest.addModuleCleanup(playwright.stop)
    # Chromium's own sandbox cannot start as root or in a container.
    BROWSER = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
    unittest.addModuleCleanup(BROWSER.close)


def events(*deltas):
    """An answer in pieces as the server would send it."""
    chunks = [{"choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    return "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n"


class BrowserTest(ServerTest):
    model = TINY_MODEL
    env = {"HEADRACE_TEST_STEP_PAUSE_MS": str(PAUSE_MS)}

    def setUp(self):
        self.complaints = []
        self.addCleanup(lambda: self.assertEqual(self.complaints, []))

    @functools.cached_property
    def page(self):
        return self.open_page()

    def open_page(self, server=None, **options):
        """A page of a browser that has never been here; what it complains of fails the test."""
        context = BROWSER.new_context(viewport={"width": 1200, "height": 800}, **options)
        self.addCleanup(context.close)
        context.set_default_timeout(10_000 * SLACK)
        page = context.new_page()
        page.on("console", lambda message: self.complaints.append(message.text))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.goto(f"http://127.0.0.1:{(server or self.server).port}/")
        expect(page.locator("#status")).to_contain_text("tokens")
        return page

    def ask(self, text, page=None):
        """Sends a question by the Enter key; returns the request's body."""
        page = page or self.page
        page.fill("#question", text)
        with page.expect_request("**/v1/chat/completions") as sent:
            page.keyboard.press("Enter")
        return sent.value.post_data_json

    def answered(self, page=None):
        """Waits until nothing is on its way; the stored text of the last message."""
        page = page or self.page
        expect(page.locator("#send")).to_be_visible()
        return page.evaluate("JSON.parse(localStorage.getItem('headrace.chats'))[0].messages.at(-1).content")

    def answer_with(self, *deltas):
        self.page.route("**/v1/chat/completions", lambda route: route.fulfill(
            status=200, content_type="text/event-stream; charset=utf-8", body=events(*deltas)))

    def set_parameters(self, page=None, **values):
        page = page or self.page
        if not page.locator("#temperature").is_visible():
            page.click("summary:has-text('Parameters')")
        for name, value in values.items():
            page.fill(f"#{name}", str(value))
            page.dispatch_event(f"#{name}", "change")


class ChatTest(BrowserTest):
    def test_an_answer_comes_in_pieces_and_whole(self):
        self.set_parameters(temperature=0, max_tokens=40)
        body = self.ask("Tell me of the mill.")
        answer = self.page.locator(".assistant .body")
        expect(self.page.locator("#stop")).to_be_visible()
        expect(self.page.locator("#messages")).to_have_attribute("aria-busy", "true")
        expect(answer).not_to_have_text("")
        first = answer.text_content()
        whole = self.answered()
        self.assertLess(len(first), len(whole))
        expect(self.page.locator("#messages")).to_have_attribute("aria-busy", "false")
        expect(self.page.locator(".assistant .figures")).to_have_text(re.compile(r"^40 tokens, first after .* a second$"))
        del body["stream"], body["stream_options"]
        self.assertEqual(whole, self.server.post("/v1/chat/completions", body).json()["choices"][0]["message"]["content"])
        # Back-quotes, stars and fences are shown as what they mean.
        self.assertEqual(re.sub(r"[`*\s]", "", answer.text_content()), re.sub(r"[`*\s]", "", whole))

    def test_parameters_are_sent(self):
        self.set_parameters(system="Be brief.", temperature="0.5", top_p="0.9", max_tokens="3", seed="7")
        body = self.ask("Hi")
        self.answered()
        model = body.pop("model")
        self.assertIn(model, self.server.get("/v1/models").body.decode())
        self.assertEqual(body, {
            "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}],
            "temperature": 0.5, "top_p": 0.9, "max_tokens": 3, "seed": 7,
            "stream": True, "stream_options": {"include_usage": True}})
        second = self.ask("And now?")["messages"]
        self.assertEqual([message["role"] for message in second], ["system", "user", "assistant", "user"])
        self.answered()

    def expect_stopped(self, stop):
        """Stops an answer on its way: page and server end it."""
        aborted = self.server.metric("vllm:request_success_total", finished_reason="abort") or 0
        self.ask("Tell me all.")
        expect(self.page.locator(".assistant .body").last).not_to_have_text("")
        stop()
        expect(self.page.locator("#send")).to_be_visible()
        expect(self.page.locator("#question")).to_be_focused()
        self.server.wait_for_metric("vllm:num_requests_running", 0, timeout=5 * SLACK)
        self.server.wait_for_metric("vllm:kv_cache_usage_perc", 0, timeout=5 * SLACK)
        self.server.wait_for_metric("vllm:request_success_total", aborted + 1, 5 * SLACK, finished_reason="abort")

    def test_stop_stops(self):
        self.expect_stopped(lambda: self.page.click("#stop"))
        expect(self.page.locator(".assistant .figures")).to_have_text("stopped")
        self.expect_stopped(lambda: self.page.keyboard.press("Escape"))
        expect(self.page.locator(".assistant .figures")).to_have_text(["stopped"] * 2)
        self.expect_stopped(lambda: self.page.click("#new-chat"))
        expect(self.page.locator(".message")).to_have_count(0)  # the answer belongs to the other chat
        self.page.get_by_role("button", name="Tell me all.", exact=True).click()
        expect(self.page.locator(".assistant .figures")).to_have_text(["stopped"] * 3)

    def test_what_went_wrong_is_told(self):
        self.ask("word " * 2000)
        expect(self.page.locator(".fault .body")).to_contain_text("no room for an answer in 512")
        expect(self.page.locator(".assistant")).to_have_count(0)
        self.assertIn("400", " ".join(self.complaints))
        self.complaints.clear()
        self.page.click("#new-chat")
        self.set_parameters(max_tokens=2)
        self.ask("Hi")
        self.answered()

    def test_chats_are_kept(self):
        self.set_parameters(max_tokens=4)
        self.ask("First of all")
        first = self.answered()
        self.page.click("#new-chat")
        self.set_parameters(max_tokens=5)
        self.ask("Second to none")
        self.answered()
        self.page.reload()
        titles = self.page.locator("#chats .title")
        expect(titles).to_have_text(["Second to none", "First of all"])
        titles.last.click()
        expect(self.page.locator(".user .body")).to_have_text("First of all")
        self.assertEqual(re.sub(r"[`*\s]", "", self.page.locator(".assistant .body").text_content()),
                         re.sub(r"[`*\s]", "", first))
        self.assertEqual(self.page.input_value("#max_tokens"), "4")
        self.page.get_by_role("button", name='Remove the chat "First of all"').click()
        expect(titles).to_have_text(["Second to none"])
        self.page.reload()
        expect(titles).to_have_text(["Second to none"])

    def test_two_tabs_keep_each_others_chats(self):
        other = self.page.context.new_page()
        other.goto(self.page.url)
        for page, text in ((self.page, "In the first tab"), (other, "In the second tab")):
            self.set_parameters(page, max_tokens=2)
            self.ask(text, page)
            self.answered(page)
        self.page.reload()
        titles = self.page.locator("#chats .title")
        self.assertEqual(sorted(titles.all_text_contents()), ["In the first tab", "In the second tab"])

    def test_an_answer_is_text_and_never_runs(self):
        evil = "<img src=x onerror='window.ran = 1'><script>window.ran = 2</script> <b>bold</b>"
        self.answer_with({"role": "assistant", "content": ""}, {"reasoning_content": evil}, {"content": evil + "\n```html\n"},
                         {"content": evil + "\n```\n`" + evil + "` **" + evil + "**"})
        self.ask(evil)
        self.answered()
        expect(self.page.locator(".assistant .body")).to_contain_text(evil)
        self.assertEqual(self.page.locator("#messages :is(img, script, b)").count(), 0)
        expect(self.page.locator(".message pre code")).to_have_text(evil + "\n")
        expect(self.page.locator("#chats .title")).to_have_text(evil[:60])
        # And were there a way to make HTML of it, the browser would not run it.
        self.assertEqual(self.complaints, [])
        self.page.evaluate("evil => document.getElementById('messages').innerHTML = evil", evil)
        self.page.evaluate("""() => {
          const script = document.createElement("script");
          script.textContent = "window.ran = 3";
          document.body.append(script);
        }""")
        self.page.wait_for_function("document.querySelector('#messages img').complete")
        self.assertIsNone(self.page.evaluate("window.ran ?? null"))
        self.assertIn("Content Security Policy", " ".join(self.complaints))
        self.complaints.clear()

    def test_with_keys_the_browser_asks(self):
        with keys_file("the-key name=user\n") as keys, Server(self.model, "--api-key-file", keys, wait=False) as server:
            self.assertIn("Basic", server.get("/").headers["www-authenticate"])
            server.wait_until_ready()
            page = self.open_page(server, http_credentials={"username": "me", "password": "the-key"})
            self.set_parameters(page, max_tokens=2)
            self.ask("Hi", page)
            self.answered(page)
            page.click("#tab-live")
            expect(page.locator("#live-fault")).to_contain_text("admin")
            self.complaints.clear()  # Chromium notes the status 403
            self.assertEqual(server.end(), 0)


class AccessTest(BrowserTest):
    def focused(self):
        return self.page.evaluate("""() => { const e = document.activeElement;
          return e.id || e.getAttribute("aria-label") || e.textContent.trim(); }""")

    def test_by_keyboard_alone(self):
        press = self.page.keyboard.press
        press("Tab")
        self.assertEqual(self.focused(), "Skip to the question")
        press("Enter")
        self.assertEqual(self.focused(), "question")
        self.page.keyboard.type("One")
        press("Shift+Enter")
        self.page.keyboard.type("Two")
        self.assertEqual(self.page.input_value("#question"), "One\nTwo")
        press("Enter")
        expect(self.page.locator("#stop")).to_be_visible()
        press("Tab")
        self.assertEqual(self.focused(), "stop")
        press("Enter")
        expect(self.page.locator(".figures").last).to_have_text("stopped")
        self.assertEqual(self.focused(), "question")

        self.page.reload()
        expect(self.page.locator("#status")).to_contain_text("tokens")
        order = []
        for _ in range(9):
            press("Tab")
            order.append(self.focused())
        self.assertEqual(order, ["Skip to the question", "tab-chat", "new-chat", "One\nTwo", 'Remove the chat "One\nTwo"',
                                 "messages", "Parameters", "question", "send"])
        self.page.focus("summary")
        press("Enter")
        press("Tab")
        self.assertEqual(self.focused(), "system")
        self.page.focus("#tab-chat")
        press("ArrowRight")
        self.assertEqual(self.focused(), "tab-live")
        expect(self.page.locator("#view-live")).to_be_visible()
        expect(self.page.locator("#view-chat")).to_be_hidden()
        press("ArrowLeft")
        expect(self.page.locator("#view-chat")).to_be_visible()

    def test_focus_is_seen(self):
        for selector in ("#new-chat", "#question", "#tab-chat", "summary"):
            self.page.focus("body")
            self.page.focus(selector)
            self.page.keyboard.press("Shift")  # by keyboard, so that :focus-visible holds
            outline = self.page.evaluate("getComputedStyle(document.activeElement).outline")
            self.assertRegex(outline, r"solid 2px|2px .*solid", selector)

    def test_everything_has_a_name_and_a_role(self):
        self.set_parameters(max_tokens=2)
        self.ask("Hi")
        self.answered()
        session = self.page.context.new_cdp_session(self.page)
        for tab, expected in (("chat", {
                ("heading", "Headrace"), ("tab", "Chat"), ("tab", "Live"), ("button", "New chat"), ("button", "Hi"),
                ("button", 'Remove the chat "Hi"'), ("log", "Messages"), ("textbox", "Question"), ("button", "Send"),
                ("textbox", "System message"), ("spinbutton", "Temperature"), ("spinbutton", "Top p"),
                ("spinbutton", "Most tokens"), ("spinbutton", "Seed"), ("navigation", "Chats")}),
                ("live", {("tabpanel", "Live"), ("tab", "Live")})):
            self.page.click(f"#tab-{tab}")
            if tab == "live":
                expect(self.page.get_by_role("img", name=re.compile("^Requests running, .*: now"))).to_be_visible()
            found = set()
            for node in session.send("Accessibility.getFullAXTree")["nodes"]:
                role, name = node.get("role", {}).get("value"), node.get("name", {}).get("value", "")
                found.add((role, name.strip()))
                focusable = any(each["name"] == "focusable" and each["value"]["value"] for each in node.get("properties", []))
                if focusable and role != "RootWebArea":
                    self.assertTrue(name, node)
            self.assertLessEqual(expected, found)
        self.assertEqual(self.page.get_attribute("html", "lang"), "en")
        self.assertEqual(self.page.get_attribute("#messages", "aria-live"), "polite")
        self.assertEqual(self.page.get_attribute("#status", "role"), "status")
        self.assertEqual(self.page.get_attribute("#live-fault", "role"), "alert")
        self.assertEqual(self.page.get_attribute("#tab-live", "aria-selected"), "true")


class LookTest(BrowserTest):
    LONG = ("Some words, `code in the line`, **bold ones** and " + "w" * 300 + "\n```python\nprint('" + "x" * 300 + "')\n```\nend")

    def show_all(self, page):
        """A page with all kinds of messages."""
        chats = [{"id": "1", "title": "t" * 60, "parameters": {}, "messages": [
            {"role": "user", "content": "Write a function that adds two numbers."},
            {"role": "assistant", "content": self.LONG, "reasoning": "Hm. " * 40, "figures": "40 tokens, first after 0.10 s"},
            {"role": "fault", "content": "the server closed the answer before its end"}]},
            *({"id": str(i), "title": f"Chat {i}", "parameters": {}, "messages": []} for i in range(2, 9))]
        page.evaluate("chats => localStorage.setItem('headrace.chats', JSON.stringify(chats))", chats)
        page.reload()
        page.click("summary:has-text('Parameters')")
        expect(page.locator(".fault .body")).to_be_visible()

    def test_contrast(self):
        for scheme in ("light", "dark"):
            page = self.open_page(color_scheme=scheme)
            self.assertEqual(page.evaluate(LOW_CONTRAST)[1], [], scheme)  # the welcome
            self.show_all(page)
            seen, low = page.evaluate(LOW_CONTRAST)
            self.assertEqual(low, [], scheme)
            self.assertGreater(seen, 30)
            page.evaluate("document.getElementById('stop').hidden = false")
            page.click("#tab-live")
            expect(page.locator("#tiles dd").first).to_be_visible()
            seen, low = page.evaluate(LOW_CONTRAST)
            self.assertEqual(low, [], scheme)
            self.assertGreater(seen, 20)

    def test_on_a_phone(self):
        page = self.open_page(has_touch=True, is_mobile=True)
        page.set_viewport_size(PHONE)
        self.show_all(page)
        overflow = "[document.documentElement.scrollWidth, document.body.scrollWidth]"
        self.assertEqual(page.evaluate(overflow), [360, 360])
        for selector in ("#question", "#send", "#new-chat", "#tab-live", ".assistant .body"):
            box = page.locator(selector).bounding_box()
            self.assertTrue(0 <= box["x"] and box["x"] + box["width"] <= 360, (selector, box))
        send = page.locator("#send").bounding_box()
        self.assertLessEqual(send["y"] + send["height"], 700)
        self.assertGreater(page.locator("#messages").bounding_box()["height"], 150)
        page.click("#tab-live")
        expect(page.locator("figure svg").first).to_be_visible()
        self.assertEqual(page.evaluate(overflow), [360, 360])


class LiveTest(BrowserTest):
    flags = ("--kv-cache-memory-bytes", "4000000")  # a small one, so that an answer takes a share that is seen

    def tile(self, name):
        return self.page.locator(f"#tiles div:has(dt:text-is('{name}')) dd")

    def test_the_numbers_move_and_are_those_of_metrics(self):
        self.ask("Tell me all.")
        expect(self.page.locator(".assistant .body")).not_to_have_text("")
        samples = []
        self.page.on("response", lambda response: response.url.endswith("/metrics") and samples.append(response.text()))
        self.page.click("#tab-live")
        expect(self.tile("Running")).to_have_text("1")
        expect(self.tile("Waiting")).to_have_text("0")
        for name in ("Tokens written a second", "Steps a second"):
            expect(self.tile(name)).to_have_text(re.compile(r"^[1-9]\d*\.\d$"))
        expect(self.tile("KV cache in use")).not_to_have_text("0.0 %")
        expect(self.tile("Gap between tokens, P50 / P99")).to_have_text(re.compile(r"^\d+ ms / \d+ ms$"))
        expect(self.page.locator("figcaption").first).not_to_contain_text("at most 0.0")
        self.page.click("#tab-chat")
        self.page.click("#stop")
        self.server.wait_for_metric("vllm:num_requests_running", 0, timeout=5 * SLACK)
        self.page.click("#tab-live")
        expect(self.tile("Running")).to_have_text("0")
        expect(self.tile("KV cache in use")).to_have_text("0.0 %")
        expect(self.tile("Preemptions")).to_have_text("0")
        self.assertGreater(len(samples), 2)

    def test_percentiles_and_rates(self):
        """The same figures, from two samples made up."""
        text = ("""vllm:generation_tokens_total{model_name="m"} %d
vllm:prompt_tokens_total{model_name="m"} %d
vllm:num_requests_running{model_name="m"} %d
vllm:num_requests_waiting{model_name="m"} 7
vllm:kv_cache_usage_perc{model_name="m"} 0.25
vllm:prefix_cache_queries_total{model_name="m"} %d
vllm:prefix_cache_hits_total{model_name="m"} %d
vllm:time_to_first_token_seconds_bucket{model_name="m",le="0.1"} %d
vllm:time_to_first_token_seconds_bucket{model_name="m",le="0.5"} %d
vllm:time_to_first_token_seconds_bucket{model_name="m",le="+Inf"} %d
""")
        samples = [text % (1000, 10, 1, 0, 0, 50, 50, 50), text % (1500, 30, 3, 200, 50, 50, 150, 150)]
        self.page.clock.install()
        self.page.clock.pause_at(time.time() + 3600)
        self.page.route("**/metrics", lambda route: route.fulfill(body=samples.pop(0) if len(samples) > 1 else samples[0]))
        self.page.click("#tab-live")
        expect(self.tile("Running")).to_have_text("1")
        self.page.clock.run_for(1000)
        expect(self.tile("Running")).to_have_text("3")
        for name, value in (("Waiting", "7"), ("Tokens written a second", "500.0"), ("Prompt tokens a second", "20.0"),
                            ("KV cache in use", "25 %"), ("Prompt found in cache", "25 %"),
                            # All hundred new ones lie between 0.1 and 0.5 s, spread evenly.
                            ("First token, P50 / P99", "300 ms / 496 ms"), ("Gap between tokens, P50 / P99", "– / –")):
            expect(self.tile(name)).to_have_text(value)

    def test_one_machine_is_no_cluster(self):
        asked = []
        self.page.on("request", lambda request: asked.append(request.url.rpartition("/")[2]))
        self.page.click("#tab-live")
        for _ in range(2):
            with self.page.expect_response("**/metrics"):
                pass
        expect(self.tile("Running")).to_have_text("0")
        expect(self.page.locator("#cluster")).to_be_hidden()
        expect(self.page.locator("#cluster-fault")).to_be_hidden()
        self.assertNotIn("cluster", asked)

    def test_a_server_that_goes_is_told(self):
        with Server(self.model) as server:
            page = self.open_page(server)
            page.click("#tab-live")
            expect(page.locator("#tiles dd").first).to_be_visible()
            server.end()
            expect(page.locator("#live-fault")).to_have_text("The server does not answer.")
        self.complaints.clear()


if __name__ == "__main__":
    unittest.main()
