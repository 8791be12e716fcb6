package page_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"loki/internal/frontend/api"
	"loki/internal/frontend/server/servertest"
)

// said are the texts of the conversation that is shown, without the buttons.
const said = `[...document.querySelectorAll(".turn:not([hidden]) .markdown")].map((e) => e.innerText).join("|")`

// settled waits until no answer is under way, the turns have their buttons, and all texts are drawn, which they are with the next frame.
func settled(p *tab, turns int) {
	p.t.Helper()
	p.until(fmt.Sprintf(`document.querySelector(".turn.live") === null && document.querySelectorAll(".turn:not(.mine) .acts button").length >= %d && document.querySelectorAll(".turn.mine").length === %[1]d && `, turns) + said + `.split("|").every(Boolean)`)
}

// A chat has its title at once. Its last answer is replaced, an earlier message is edited, and a new chat begins with what was said before.
func testChatTurns(t *testing.T, b context.Context, s *servertest.Server) {
	p := newTab(t, b, s.URL, chromedp.WithNewBrowserContext())
	p.open("#/chat")
	p.write(".composer textarea", "count slowly for the title\r")
	p.sees("one two")
	p.until(`document.querySelector(".turn.live") !== null && document.querySelector("header.title h2").innerText === "count slowly for the title" && document.title.startsWith("count slowly for the title")`)
	p.until(`[...document.querySelectorAll('.side a[aria-current="page"]')].some((a) => a.innerText.includes("count slowly for the title") && a.innerText.includes("answering"))`)
	p.press(".composer", "Stop")
	p.sees("Stopped.")
	p.press(".talk", "Branch") // of an answer that was stopped
	p.sees("This is a new chat")

	p.visit("#/chat")
	p.until(`document.querySelector(".turn") === null`)
	p.write(".composer textarea", "first\r")
	settled(p, 1)
	p.write(".composer textarea", "roll a die\r")
	settled(p, 2)
	hash := p.hash("#/chat/")
	whole := eval[string](p, said)
	if !strings.HasSuffix(whole, "|roll a die|One.") {
		t.Fatalf("the chat is %q", whole)
	}
	p.press(".talk", "Regenerate")
	p.until(said + `.endsWith("|roll a die|Two.")`)
	settled(p, 2)
	p.open(hash)
	p.until(said + `.endsWith("|roll a die|Two.") && !` + said + `.includes("One.")`)
	whole = eval[string](p, said)

	p.run(`[...document.querySelectorAll(".turn:not(.mine)")][0].querySelectorAll(".acts button")[1].click()`) // of the first answer
	p.sees("This is a new chat")
	p.until(`location.hash !== ` + quote(hash) + ` && document.querySelectorAll(".turn.mine").length === 1`)
	branch := p.hash("#/chat/")
	p.write(".composer textarea", "in the branch\r")
	settled(p, 2)
	p.run(`history.back()`)
	p.until(`location.hash === ` + quote(hash) + ` && ` + said + ` === ` + quote(whole))

	p.run(`document.querySelector(".turn.mine .acts button").click()`)
	p.until(`document.querySelector(".composer textarea").value === "first" && document.querySelector(".turn.mine.edited") !== null`)
	p.press(".composer", "Cancel the edit")
	p.until(`document.querySelector(".composer textarea").value === "" && document.querySelector(".edited") === null`)
	p.run(`[...document.querySelectorAll(".turn.mine .acts button")].at(-1).click()`)
	p.until(`document.querySelector(".composer textarea").value === "roll a die"`)
	p.write(".composer textarea", " again\r")
	p.until(`location.hash !== ` + quote(hash) + ` && ` + said + `.includes("|roll a die again|")`)
	settled(p, 2)
	if eval[bool](p, said+`.includes("|roll a die|")`) {
		t.Error("what came after the edited message is still there")
	}
	for address, want := range map[string]string{hash: "|roll a die|Two.", branch: "|in the branch|"} {
		p.open(address)
		p.until(said + `.includes(` + quote(want) + `)`)
	}
	if got := eval[string](p, `[...document.querySelectorAll(".side strong")].map((e) => e.innerText).join()`); regexp.MustCompile(`\d{8}T\d{6}|[0-9a-f]{8}-`).MatchString(got) {
		t.Errorf("chats are called %s", got)
	}
	p.keys("\u001b")
	p.keys("?")
	p.until(`document.querySelector("dialog").innerText.replace(/\s+/g, " ").includes("Enter send the message ShiftEnter begin a new line")`)
}

// A tab that does not show the chat as it is now changes nothing in it, and shows it. A message whose question waits for an answer is
// there in each tab.
func testChatTabs(t *testing.T, b context.Context, s *servertest.Server) {
	one := newTab(t, b, s.URL, chromedp.WithNewBrowserContext())
	one.open("#/chat")
	one.write(".composer textarea", "first\r")
	settled(one, 1)
	hash := one.hash("#/chat/")
	two := newTab(t, b, s.URL, chromedp.WithNewBrowserContext())
	two.open(hash)
	settled(two, 1)
	two.write(".composer textarea", "second\r")
	settled(two, 2)
	for i, act := range []string{"Regenerate", "Branch", "Edit"} {
		if i > 0 {
			two.write(".composer textarea", "another\r")
			settled(two, i+2)
		}
		whole := eval[string](two, said)
		if one.press(".talk", act); act == "Edit" {
			one.until(`document.querySelector(".composer textarea").value === "first"`)
			one.write(".composer textarea", " edited\r")
		}
		one.sees("nothing was done")
		settled(one, i+2)
		one.until(said + ` === ` + quote(whole) + ` && location.hash === ` + quote(hash))
		two.open(hash)
		two.until(said + ` === ` + quote(whole))
	}
	one.until(`document.querySelector(".composer textarea").value === "first edited"`)

	one.visit("#/chat")
	one.until(`document.querySelector(".turn") === null`)
	one.write(".composer textarea", "half a message")
	one.visit("#/runs") // and back: what was written is there
	one.until(`document.querySelector(".composer") === null`)
	one.visit("#/chat")
	one.until(`document.querySelector(".composer textarea")?.value.endsWith("half a message")`)

	one.open("#/chat?agent=writer")
	one.until(`document.querySelector(".title select").value === "agent:writer"`)
	one.write(".composer textarea", "write it\r")
	one.sees("Cancel the run")
	hash = one.hash("#/chat/")
	for _, p := range []*tab{two, one} {
		p.open(hash)
		p.until(`document.querySelector(".turn.mine")?.innerText.includes("write it") && document.querySelector(".talk .diff ins")?.innerText.trim() === "+names are checked twice"`)
	}
	two.run(`[...document.querySelectorAll(".talk .choice")].find((b) => b.innerText.startsWith("always for this run: ")).click()`)
	two.until(said + `.endsWith("|It is written.") && document.querySelectorAll(".turn.mine").length === 1`)
}

// Code has the colors of its language and is copied; other attributes of it do not survive.
func testChatCode(t *testing.T, b context.Context, s *servertest.Server) {
	p := newTab(t, b, s.URL, chromedp.WithNewBrowserContext())
	p.open("#/chat")
	p.write(".composer textarea", "show code\r")
	p.until(`document.querySelector(".talk pre .is-keyword")?.innerText === "func" && document.querySelector(".talk pre .is-comment")?.innerText === "// begins"`)
	p.run(`document.execCommand = (name) => { window.copied = document.activeElement.value; return true; }; Object.defineProperty(navigator, "clipboard", { value: { writeText: async () => { throw new Error("none"); } } });`)
	for selector, want := range map[string]string{".code-box > button": "func main() {} // begins", ".turn footer .acts button": "```go\nfunc main() {} // begins\n```\n"} {
		p.until(`document.querySelector(` + quote(selector) + `) !== null`)
		p.run(`document.querySelector(` + quote(selector) + `).click()`)
		p.until(`window.copied === ` + quote(want))
		p.until(`document.querySelector(` + quote(selector) + `).innerText === "Copied"`)
	}
}

// A question of permission shows the change in colors, and an answer that holds for the run is not asked for again. A run is canceled at its question.
func testPermission(t *testing.T, b context.Context, s *servertest.Server) {
	id := begin(t, s, "writer", "write it")
	p := newTab(t, b, s.URL)
	p.open("#/runs/" + id)
	p.until(`document.querySelector(".asks .diff del")?.innerText.trim() === "-names are checked" && document.querySelector(".asks .diff ins")?.innerText.trim() === "+names are checked twice"`)
	if n := eval[int](p, `document.querySelectorAll(".asks .choice").length`); n != 4 { // yes, no, always and the arguments
		t.Errorf("%d answers", n)
	}
	p.run(`[...document.querySelectorAll(".asks .choice")].find((b) => b.innerText.startsWith("always for this run: ")).click()`)
	p.until(`document.querySelector(".run-head .status.is-done") !== null`)
	p.sees("It is written.")
	if n := eval[int](p, `[...document.querySelectorAll(".list .row.question")].length`); n != 1 {
		t.Errorf("%d questions, want one for two calls", n)
	}
	id = begin(t, s, "writer", "write it")
	p.open("#/questions")
	p.until(`document.body.innerText.includes(` + quote(id) + `)`)
	p.run(`[...[...document.querySelectorAll(".card")].find((c) => c.innerText.includes(` + quote(id) + `)).querySelectorAll("button")].find((b) => b.innerText === "Cancel the run").click()`)
	p.press("dialog", "Cancel the run")
	p.sees("The run is canceled.")
	var r api.Run
	if s.Get("/v1/runs/"+id).JSON(t, &r); r.Status != "canceled" {
		t.Errorf("the run is %s", r.Status)
	}
}

// A question says in words what its answer has to be, and an answer continues a run although its agent has changed, if the user says so.
func testChangedAgent(t *testing.T, b context.Context) {
	s := servertest.Program(t, files(t, ""))
	id := begin(t, s, "counts", "some words")
	p := newTab(t, b, s.URL)
	p.allow("409")
	p.open("#/runs/" + id)
	p.sees("At most 40 characters.")
	p.until(`document.querySelector(".asks textarea").placeholder === "Leave empty for Untitled"`)
	file := filepath.Join(s.Dir, "agents/counts/graph.yaml")
	text, err := os.ReadFile(file)
	if err == nil {
		err = os.WriteFile(file, []byte(strings.Replace(string(text), "Title?", "Which title?", 1)), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	p.write(".asks textarea", "Boats")
	p.press(".asks", "Answer")
	p.sees("has changed since")
	p.press(".asks", "Continue anyway")
	p.sees("Publish Boats?")
}

// Numbers have their units, those of a plain agent and of a chat are the ones of --run, and such runs are compared, too.
func testUnits(t *testing.T, b context.Context, s *servertest.Server) {
	var ids []string
	for _, prompt := range []string{"show code", "roll no die"} {
		var made api.Run
		s.Post("/v1/agents/guide/runs", `{"prompt": "`+prompt+`", "wait": 60}`).JSON(t, &made)
		ids = append(ids, made.ID)
	}
	p := newTab(t, b, s.URL)
	p.open("#/agents/counts") // which has no starters
	p.sees("Start run")
	if got := eval[string](p, `document.querySelector("form.begin").innerText`); regexp.MustCompile(`(?m)^\s*0\s*$`).MatchString(got) {
		t.Errorf("a number without a unit in %q", got)
	}
	p.until(`(window.left ??= import("/page/trace.js").then(({ Trace, secondsLeft }) => {
		const trace = new Trace(), at = (s) => new Date(1.8e12 + s * 1000).toISOString();
		trace.add({ type: "node_started", time: at(0), node: "each", node_type: "map", visit: 1 }, 1);
		for (let i = 1; i <= 100; i++) {
			trace.add({ type: "map_progress", time: at(i * 0.3), node: "each", done: i, total: 500 }, i + 1);
			trace.add({ type: "limited", time: at(i * 0.3), node: "each", item: i, at_once: 2, reason: "concurrency" }, 0);
		}
		window.left = secondsLeft(trace.roots[0]);
	}), Math.abs(window.left - 120) < 2)`)
	p.open("#/runs/" + ids[0])
	p.until(`document.querySelector(".run-head .status.is-done") !== null && document.querySelector(".list .row.model .tokens") !== null`)
	facts := eval[string](p, `document.querySelector(".run-head .facts").innerText.replace(/\s+/g, " ")`)
	tokens := regexp.MustCompile(`used +([\d,]+) tokens`).FindStringSubmatch(s.Run("--run", ids[0]))
	if tokens == nil || !strings.Contains(facts, "tokens "+tokens[1]+" (") || strings.Contains(facts, "steps") {
		t.Errorf("the page shows %q, and --run %q", facts, tokens)
	}
	if got := eval[string](p, `document.querySelector(".list .row.model .tokens").innerText + " " + document.querySelector(".list .row.model .time").innerText`); !regexp.MustCompile(`^\d+ tokens? [\d.]+ m?s$`).MatchString(got) {
		t.Errorf("the row shows %q", got)
	}
	if eval[bool](p, `document.body.innerText.includes("?")`) {
		t.Error("a price is shown as ?")
	}
	p.open("#/runs")
	p.until(`document.querySelectorAll("tbody tr").length > 1`)
	if got := eval[string](p, `[...document.querySelectorAll("tbody tr")].find((r) => r.innerText.includes(`+quote(ids[0])+`)).querySelector(".c6").innerText`); got != "" {
		t.Errorf("a run without steps has %q", got)
	}
	p.visit("#/compare/" + ids[0] + "/" + ids[1])
	p.until(`document.querySelector("table.nodes") !== null && document.querySelectorAll(".diff").length === 2`) // prompts, answers
	row := eval[[]string](p, `[...document.querySelectorAll("table.nodes tbody tr")[0].cells].map((c) => c.innerText)`)
	if len(row) != 11 || row[2] == "" || row[3] == "" || row[7] == "" || row[8] == "" {
		t.Errorf("times and tokens are %q", row)
	}
}

// The variables of an agent are asked for before a run and before a chat, and the page of agents shows one.
func testVariables(t *testing.T, b context.Context, s *servertest.Server) {
	p := newTab(t, b, s.URL)
	p.open("#/agents")
	p.until(`document.querySelector(".begin") !== null && document.querySelector('.side a[aria-current="page"]') !== null`)
	p.visit("#/agents/trip")
	p.until(`document.querySelector("#var-city") !== null && document.querySelector("#var-days").value === "3"`)
	p.allow("400") // of a run without a value
	p.write("#prompt", "plan")
	p.press(".begin", "Start run")
	p.sees("city")
	p.until(`document.querySelector(".begin .failure") !== null`)
	p.write("#var-city", "Graz")
	p.press(".begin", "Start run")
	id := strings.TrimPrefix(p.hash("#/runs/"), "#/runs/")
	var r struct{ Variables map[string]string }
	if err := json.Unmarshal([]byte(s.Run("--run", id, "--output", "json")), &r); err != nil {
		t.Error(err)
	}
	p.visit("#/chat?agent=trip")
	p.until(`document.querySelector(".talk #var-city") !== null`)
	p.press(".talk", "Plan it")
	p.write("#var-city", "Linz")
	p.until(`document.querySelector(".composer textarea").value === "Plan it"`)
	p.press(".composer", "Send")
	settled(p, 1)
	chat := strings.TrimPrefix(p.hash("#/chat/"), "#/chat/")
	var d api.SessionDetails
	if s.Get("/v1/sessions/"+chat).JSON(t, &d); d.Agent != "trip" || !strings.Contains(d.Messages[0].Text(), "a trip to Linz for 3 days") {
		t.Errorf("the chat began with %+v", d.Messages)
	}
}

// A knowledge base shows its documents, is searched, rebuilt and chatted with.
func testKnowledge(t *testing.T, b context.Context) {
	s := servertest.Program(t, servertest.Files{"config.yaml": "model: builtin:echo\nclients: []\n", "docs/boats.md": "# Boats\n\nRowing boats are for hire in April.\n"})
	p := newTab(t, b, s.URL)
	p.open("#/knowledge")
	p.sees("There are no knowledge bases.")
	s.Run("--rag", "harbor", "--rag-add", s.Dir+"/docs", "--rag-set", "embedding_model=builtin:hash")
	p.reload()
	p.sees("1 document · 1 chunk")
	p.sees("boats.md")
	p.write("#query", "hire boats\r")
	p.until(`document.querySelector(".cards .card pre")?.innerText.includes("Rowing boats")`)
	p.press(".begin", "Rebuild")
	p.until(`[...document.querySelectorAll(".begin button")].some((b) => b.innerText === "Rebuild" && !b.disabled) && document.querySelector(".cards .card") === null`)
	p.press(".begin", "Chat with it")
	p.until(`document.querySelector("header.title select").value === "rag:harbor"`)
	p.write(".composer textarea", "What is for hire?\r")
	settled(p, 1)
	chat := strings.TrimPrefix(p.hash("#/chat/"), "#/chat/")
	var d api.SessionDetails
	if s.Get("/v1/sessions/"+chat).JSON(t, &d); d.RAG != "harbor" {
		t.Errorf("the chat is %+v", d.Session)
	}
}

// What is entered while a model answers is read when the answer is complete. It belongs to the turn, also when the chat is opened again.
func testChatSteer(t *testing.T, b context.Context) {
	s := servertest.Program(t, servertest.Files{
		"config.yaml": "model: builtin:script\nclients: [{type: builtin, script: rules.yaml}]\n",
		"rules.yaml":  "rules:\n  - match: {text: slowly}\n    reply: one two three\n    chunk_delay: 1s\ndefault: {reply: 'You said: {{text}}'}\n",
	})
	p := newTab(t, b, s.URL, chromedp.WithNewBrowserContext())
	p.open("#/chat")
	p.write(".composer textarea", "slowly\r")
	p.sees("one")
	p.write(".composer textarea", "look left\r")
	p.until(`document.querySelector(".composer textarea").value === "" && document.querySelector(".notice").innerText.includes("look left")`)
	p.until(`document.querySelector(".steer")?.innerText === "» look left"`)
	settled(p, 1)
	p.sees("You said: look left")
	p.open(p.hash("#/chat/"))
	p.until(`document.querySelector(".steer")?.innerText === "» look left"`)
	settled(p, 1)
}

// In plan mode nothing is changed before the plan is accepted. It is shown, changed as a text, refused with a reason, and accepted, which ends
// the mode.
func testChatPlan(t *testing.T, b context.Context) {
	file := filepath.Join(t.TempDir(), "written")
	s := servertest.Program(t, servertest.Files{
		"config.yaml": "model: builtin:script\nenabled_tools: all\nclients: [{type: builtin, script: rules.yaml}]\npermission: {rules: [{tool: fs_write, action: allow, path: '/**'}]}\n",
		"rules.yaml": `rules:
  - match: {text: mend it, turn: 1}
    tool_calls:
      - {name: fs_write, arguments: {path: ` + quote(file) + `, contents: early}}
      - {name: plan__propose, arguments: {title: Mend it, summary: It leaks., steps: [{text: "Tar <b id=made>it</b>", files: [boat.txt]}]}}
  - match: {tool_result: '"refused"'}
    tool_calls: [{name: plan__propose, arguments: {title: Mend it with oak, summary: It leaks., steps: [{text: Saw}]}}]
  - match: {tool_result: '"accepted"'}
    tool_calls: [{name: fs_write, arguments: {path: ` + quote(file) + `, contents: "{{tool_result}}"}}, {name: todo__clear, arguments: {}}]
default: {reply: 'It is done.'}
`,
	})
	p := newTab(t, b, s.URL, chromedp.WithNewBrowserContext())
	p.open("#/chat")
	p.run(`{ const mode = document.querySelector("select.mode"); mode.value = "plan"; mode.dispatchEvent(new Event("change")); }`)
	p.write(".composer textarea", "mend it\r")
	choose := func(answer string) {
		t.Helper()
		p.until(`[...document.querySelectorAll(".talk .choice")].some((b) => !b.disabled && b.innerText === ` + quote(answer) + `)`)
		p.run(`[...document.querySelectorAll(".talk .choice")].find((b) => !b.disabled && b.innerText === ` + quote(answer) + `).click()`)
	}
	p.until(`document.querySelector(".tool.plan h3")?.innerText === "Mend it" && document.querySelector(".talk .question")?.innerText.includes("Accept this plan?")`)
	if _, err := os.Stat(file); err == nil || eval[bool](p, `document.querySelector("#made") !== null`) {
		t.Fatalf("before the plan is accepted: %v", err)
	}
	choose("edit")
	p.until(`document.querySelector(".talk .own textarea")?.value.includes("1. Tar")`)
	p.run(`{ const field = document.querySelector(".talk .own textarea"); field.value = field.value.replace("It leaks.", "It leaks badly."); field.form.requestSubmit(); }`)
	p.sees("It leaks badly.")
	choose("no, and say why")
	p.sees("What should be different?")
	p.write(".talk .own textarea", "Use oak.")
	p.press(".talk", "Answer")
	p.sees("Mend it with oak")
	if mode := eval[string](p, `document.querySelector("select.mode").value`); mode != "plan" {
		t.Errorf("after a refused plan the mode is %s", mode)
	}
	p.open(p.hash("#/chat/"))
	p.until(`document.querySelector("select.mode").value === "plan"`)
	choose("accept")
	p.until(said + `.endsWith("|It is done.") && document.querySelector("select.mode").value === "ask"`)
	if text, err := os.ReadFile(file); err != nil || !strings.Contains(string(text), "accepted") {
		t.Errorf("the file has %q, %v", text, err)
	}
}

// Facts are added, found, changed and forgotten, and what a model proposes is accepted or refused, with what its text shows as a text.
func testMemory(t *testing.T, b context.Context) {
	s := servertest.Program(t, servertest.Files{
		"config.yaml":               "model: builtin:script\nclients: [{type: builtin, script: rules.yaml}]\napi: {memory: propose}\n",
		"agents/keeper/config.yaml": "name: keeper\nversion: \"1.0\"\ninstructions: Work.\n",
		"rules.yaml": `rules:
  - match: {turn: 1}
    tool_calls: [{name: memory__save, arguments: {title: "{{text}} <b id=made>t</b>", text: "<b id=made>{{text}}</b> have names.", scope: user}}]
default: {reply: done}
`,
	})
	for _, what := range []string{"Boats", "Rivers"} {
		if a := s.Post("/v1/completions", `{"agent": "keeper", "prompt": `+quote(what)+`}`); a.Status != 200 {
			t.Fatal(a.Body)
		}
	}
	p := newTab(t, b, s.URL, chromedp.WithNewBrowserContext())
	p.open("#/runs")
	p.until(`!document.querySelector('.top a[data-view="memory"]').hidden`)
	p.visit("#/memory")
	p.until(`document.querySelectorAll('[aria-label="Proposals"] .card').length === 2`)
	press := func(card, button string) {
		t.Helper()
		p.run(`[...[...document.querySelectorAll(".card")].find((c) => c.innerText.includes(` + quote(card) + `)).querySelectorAll("button")].find((b) => b.innerText === ` + quote(button) + `).click()`)
	}
	press("Rivers", "Refuse")
	p.until(`document.querySelectorAll('[aria-label="Proposals"] .card').length === 1`)
	press("Boats", "Accept")
	p.until(`document.querySelectorAll('[aria-label="Proposals"] .card').length === 0 && document.querySelector('[aria-label="Facts"]').innerText.includes("<b id=made>Boats</b> have names.")`)
	p.write("#fact", "Tar takes two days.")
	p.press("form.begin", "Remember")
	p.until(`document.querySelectorAll('[aria-label="Facts"] .card').length === 2 && document.querySelector("#fact").value === ""`)
	p.write("#find", "tar")
	p.until(`document.querySelectorAll('[aria-label="Facts"] .card').length === 1`)
	press("Tar", "Edit")
	p.write(`[aria-label="Text of the fact"]`, " In rain, three.")
	press("Tar", "Save")
	p.until(`document.querySelector('[aria-label="Facts"]').innerText.includes("In rain, three.") && document.querySelector('[aria-label="Facts"] strong').innerText.includes("In rain") && document.querySelector('[aria-label="Text of the fact"]') === null`)
	press("Tar", "Pin")
	p.until(`document.querySelector('[aria-label="Facts"]').innerText.includes("with each question")`)
	press("Tar", "Forget")
	p.press("dialog", "Forget")
	p.sees("Nothing was found.")
	if eval[bool](p, `document.querySelector("#made") !== null`) {
		t.Error("a text became an element")
	}
	if a := s.Get("/v1/memory"); !strings.Contains(a.Body, "have names") || strings.Contains(a.Body, "Tar") {
		t.Errorf("the server has %s", a.Body)
	}
}
