package page_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	cdpruntime "github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"loki/internal/base/process/npmtest"
	"loki/internal/base/process/sandbox"
	"loki/internal/base/text/sample"
	"loki/internal/frontend/cli"
	"loki/internal/frontend/server"
	"loki/internal/frontend/server/servertest"
	"loki/internal/service/auth"
)

// patience is how long a test waits for something to be seen, and limit how long a test may take in all. Both are long,
// since a browser on a busy machine is slow, and nothing here measures time.
const (
	patience = 2 * time.Minute
	limit    = 4 * time.Minute
)

func TestMain(m *testing.M) {
	servertest.Main(m, func() int {
		return cli.Main(os.Args[1:], os.Environ(), cli.Terminal(), cli.Faces{Server: server.Serve})
	})
}

// numbers is how many times the agent many asks a model. Each time gives two events.
func numbers() int {
	if sample.Full() {
		return 5100
	}
	return 600
}

// files returns the configuration directory of a server, with further lines of config.yaml.
func files(t *testing.T, extra string) servertest.Files {
	t.Helper()
	all := servertest.Files{
		"config.yaml": `model: builtin:script
clients:
  - type: builtin
    script: agents/rules.yaml
    models:
      - {name: script, input_price: 3, output_price: 15, cached_input_price: 0.3, supports_function_calling: true}
      - {name: echo}
permission: {rules: [{tool: "fs_*", action: allow, path: ["**", "*"]}]} # the files are beside the configuration
` + extra,
		"CHANGES.md": "names are checked\n",
		"evil.html":  `<img src=x onerror="window.pwned = 30"><script>window.pwned = 31</script>`,
	}
	agents := os.DirFS("testdata")
	err := fs.WalkDir(agents, "agents", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := fs.ReadFile(agents, name)
		all[name] = strings.ReplaceAll(string(text), "5100", strconv.Itoa(numbers()))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// begin starts an agent and returns the id of its run.
func begin(t *testing.T, s *servertest.Server, agent, prompt string) string {
	t.Helper()
	var made struct{ ID string }
	answer := s.Post("/v1/agents/"+agent+"/runs", `{"prompt": `+quote(prompt)+`}`)
	if answer.JSON(t, &made); made.ID == "" {
		t.Fatalf("the run did not begin: %s", answer.Body)
	}
	return made.ID
}

// browser starts Chromium, which all tests share. Without it they are skipped, but fail where the variable CI is set.
func browser(t *testing.T) context.Context {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a browser")
	}
	if runtime.GOOS != "linux" {
		t.Skip("the browser of Debian is on Linux only")
	}
	names := []string{"chromium", "chromium-browser", "google-chrome"}
	i := slices.IndexFunc(names, func(name string) bool { _, err := exec.LookPath(name); return err == nil })
	switch {
	case i < 0 && os.Getenv("CI") != "":
		t.Fatalf("none of %q is installed, which the tests of the page need", names)
	case i < 0:
		t.Skipf("none of %q is installed", names)
	}
	options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]), chromedp.ExecPath(names[i]), chromedp.NoSandbox, chromedp.UserDataDir(t.TempDir()),
		chromedp.WSURLReadTimeout(patience), chromedp.WindowSize(1440, 900), chromedp.Flag("process-per-site", true),
		chromedp.Flag("force-prefers-reduced-motion", true)) // animations are drawn by the processor, and take all of it
	ctx, cancel := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	if err := chromedp.Do(ctx); err != nil {
		t.Fatal(err)
	}
	return ctx
}

// tab is one that fails the test for each error of the console, each exception, each dialog and each request to
// another host.
type tab struct {
	t   *testing.T
	ctx context.Context // ends when the test has taken too long
	url string

	opened int // how many times the page was loaded

	mu      sync.Mutex                 // guards what follows
	allowed []string                   // parts of messages of the console that are meant
	loading map[network.RequestID]bool // requests under way that are not streams of events
}

func newTab(t *testing.T, b context.Context, url string, options ...chromedp.ContextOption) *tab {
	t.Helper()
	ctx, stop := context.WithTimeout(b, limit)
	t.Cleanup(stop)
	ctx, cancel := chromedp.NewContext(ctx, options...)
	t.Cleanup(cancel)
	p := &tab{t: t, ctx: ctx, url: url, loading: map[network.RequestID]bool{}}
	if err := chromedp.Do(ctx); err != nil {
		t.Fatal(err)
	}
	if err := chromedp.Listen(ctx, p.listen); err != nil {
		t.Fatal(err)
	}
	call(p, network.Enable, network.EnableParams{})
	call(p, log.Enable, cdp.Empty{})
	call(p, emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true}) // as if it were the only one
	return p
}

func (p *tab) listen(ev any) {
	switch ev := ev.(type) {
	case *cdpruntime.EventConsoleAPICalled:
		if ev.Type == cdpruntime.ConsoleAPICalledTypeError || ev.Type == cdpruntime.ConsoleAPICalledTypeWarning {
			var words []string
			for _, arg := range ev.Args {
				words = append(words, string(arg.Value)+arg.Description)
			}
			p.report("the console says: %s", strings.Join(words, " "))
		}
	case *cdpruntime.EventExceptionThrown:
		p.report("an exception: %s", (&chromedp.ExceptionError{ExceptionDetails: ev.ExceptionDetails}).Error())
	case *log.EventEntryAdded:
		if ev.Entry.Level == log.EntryLevelError || ev.Entry.Level == log.EntryLevelWarning {
			p.report("the browser says: %s %s", ev.Entry.Text, ev.Entry.URL)
		}
	case *page.EventJavascriptDialogOpening:
		p.report("a dialog: %s", ev.Message)
	case *network.EventRequestWillBeSent:
		to := ev.Request.URL
		if !strings.HasPrefix(to, p.url+"/") && !strings.HasPrefix(to, "data:") && to != "about:blank" {
			p.report("a request to %s", to)
		}
		if ev.Type == network.ResourceTypeDocument { // what the one before was loading is given up
			p.mu.Lock()
			clear(p.loading)
			p.mu.Unlock()
		}
		p.load(ev.RequestID, !strings.HasSuffix(to, "/events"))
	case *network.EventLoadingFinished:
		p.load(ev.RequestID, false)
	case *network.EventLoadingFailed:
		p.load(ev.RequestID, false)
	}
}

func (p *tab) load(id network.RequestID, begins bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if begins {
		p.loading[id] = true
	} else {
		delete(p.loading, id)
	}
}

// settle waits until nothing is being loaded and what was loaded is shown.
func (p *tab) settle() {
	p.t.Helper()
	for quiet := 0; quiet < 2; {
		p.run(`new Promise((r) => requestAnimationFrame(() => requestAnimationFrame(r)))`) // fails when the time is over
		p.mu.Lock()
		if quiet++; len(p.loading) > 0 {
			quiet = 0
		}
		p.mu.Unlock()
	}
}

func (p *tab) report(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	p.mu.Lock()
	defer p.mu.Unlock()
	if !slices.ContainsFunc(p.allowed, func(part string) bool { return strings.Contains(text, part) }) {
		p.t.Error(text)
	}
}

// allow lets messages pass that a test provokes.
func (p *tab) allow(parts ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.allowed = append(p.allowed, parts...)
}

func (p *tab) do(actions ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		p.t.Fatal(err)
	}
}

// call sends a command of the protocol.
func call[P, R any](p *tab, command cdp.Command[P, R], params P) {
	p.t.Helper()
	if _, err := chromedp.Call(p.ctx, command, params); err != nil {
		p.t.Fatal(err)
	}
}

// open loads the page with an address. The query has the browser load it although only the hash may differ.
func (p *tab) open(hash string) {
	p.t.Helper()
	p.opened++
	p.do(chromedp.Navigate(fmt.Sprintf("%s/?%d%s", p.url, p.opened, hash)), chromedp.WaitReady(chromedp.CSS("main *")))
}

// visit goes to an address without loading the page.
func (p *tab) visit(hash string) {
	p.t.Helper()
	p.run(`location.hash = ` + quote(hash))
}

func (p *tab) reload() {
	p.t.Helper()
	p.do(chromedp.Reload())
}

// keys presses keys, of the element with the focus. As with a keyboard, a key that the page takes as a shortcut writes
// nothing.
func (p *tab) keys(keys string) {
	p.t.Helper()
	p.do(chromedp.KeyEvent(keys, func(e *input.DispatchKeyEventParams) {
		if e.Type == input.DispatchKeyEventTypeKeyDown {
			e.Type = input.DispatchKeyEventTypeRawKeyDown
		}
	}))
}

// write types into an element.
func (p *tab) write(selector, text string) {
	p.t.Helper()
	p.do(chromedp.SendKeys(chromedp.CSS(selector), text))
}

// eval returns the value of an expression.
func eval[T any](p *tab, js string) T {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](js, func(e *cdpruntime.EvaluateParams) { e.AwaitPromise = new(true) }))
	if err != nil {
		p.t.Fatalf("%s: %v", js[:min(len(js), 300)], err)
	}
	return v
}

// run runs a statement.
func (p *tab) run(js string) {
	p.t.Helper()
	eval[chromedp.Void](p, js)
}

// until waits for an expression to be true.
func (p *tab) until(js string) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	for tick := time.NewTicker(50 * time.Millisecond); ; {
		ok, err := chromedp.Run(ctx, chromedp.Evaluate[bool](js))
		if ok {
			tick.Stop()
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			shown, _ := chromedp.Run(p.ctx, chromedp.Evaluate[string](`location.hash + "\n" + document.body.innerText.slice(0, 3000)`))
			p.t.Fatalf("%s is not so (%v). The page shows:\n%s", js, err, shown)
		}
	}
}

// sees waits for a text.
func (p *tab) sees(text string) {
	p.t.Helper()
	p.until(`document.body.innerText.includes(` + quote(text) + `)`)
}

// press clicks on the button or link with a name, within what a selector finds.
func (p *tab) press(within, name string) {
	p.t.Helper()
	find := `[...document.querySelectorAll(` + quote(within+" button, "+within+" a, "+within+" summary") + `)].find((b) => !b.disabled && (b.textContent.trim() || b.getAttribute("aria-label")) === ` + quote(name) + `)`
	p.until(`Boolean(` + find + `)`)
	p.run(find + `.click()`)
}

func quote(text string) string {
	b, _ := json.Marshal(text) // of a string, which cannot fail
	return string(b)
}

func (p *tab) size(width, height int64, theme string) {
	p.t.Helper()
	call(p, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: width, Height: height, DeviceScaleFactor: 1})
	call(p, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: theme}}})
}

// hash waits for an address that begins so, and returns it.
func (p *tab) hash(prefix string) string {
	p.t.Helper()
	p.until(`location.hash.startsWith(` + quote(prefix) + `)`)
	return eval[string](p, `location.hash`)
}

func TestBrowser(t *testing.T) {
	b := browser(t)
	s := servertest.Program(t, files(t, "api: {limits: {max_body_bytes: 1048576}}\n"))
	waiting := sync.OnceValue(func() string { return begin(t, s, "release", "Write the notes") })
	for name, test := range map[string]func(*testing.T){
		"answer_in_two_tabs": func(t *testing.T) { testAnswer(t, b, s) },
		"reload_in_a_stream": func(t *testing.T) { testReload(t, b, s, waiting()) },
		"many_events":        func(t *testing.T) { testMany(t, b, s) },
		"hostile":            func(t *testing.T) { testHostile(t, b, s) },
		"chat":               func(t *testing.T) { testChat(t, b, s) },
		"chat_fails":         func(t *testing.T) { testChatFails(t, b, s) },
		"chat_turns":         func(t *testing.T) { testChatTurns(t, b, s) },
		"chat_tabs":          func(t *testing.T) { testChatTabs(t, b, s) },
		"chat_steer":         func(t *testing.T) { testChatSteer(t, b) },
		"chat_plan":          func(t *testing.T) { testChatPlan(t, b) },
		"memory":             func(t *testing.T) { testMemory(t, b) },
		"chat_code":          func(t *testing.T) { testChatCode(t, b, s) },
		"permission":         func(t *testing.T) { testPermission(t, b, s) },
		"changed_agent":      func(t *testing.T) { testChangedAgent(t, b) },
		"units":              func(t *testing.T) { testUnits(t, b, s) },
		"variables":          func(t *testing.T) { testVariables(t, b, s) },
		"knowledge":          func(t *testing.T) { testKnowledge(t, b) },
		"jobs":               func(t *testing.T) { testJobs(t, b) },
		"schedules":          func(t *testing.T) { testSchedules(t, b) },
		"fork_and_compare":   func(t *testing.T) { testFork(t, b, s, waiting()) },
		"cancel_on_a_phone":  func(t *testing.T) { testCancel(t, b, s) },
		"budget":             func(t *testing.T) { testBudget(t, b, s) },
		"keyboard":           func(t *testing.T) { testKeyboard(t, b, s, waiting()) },
		"accessible":         func(t *testing.T) { testAccessible(t, b, s, waiting()) },
		"restart":            func(t *testing.T) { testRestart(t, b) },
		"sign_in":            func(t *testing.T) { testSignIn(t, b) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t)
		})
	}
}

// The week of the schedules is shown, a button pauses one, and one that was made here can be deleted. Names are text.
func testSchedules(t *testing.T, b context.Context) {
	s := servertest.Program(t, servertest.Files{
		"config.yaml": `model: builtin:echo
clients: [{type: builtin}]
schedules:
  morning: {agent: helper, cron: "0 7 * * *", timezone: UTC, prompt: "<b id=made>up</b>"}
  weekly: {agent: helper, every: 7d}
`,
		"agents/helper/config.yaml": "name: helper\nversion: \"1.0\"\ninstructions: Help.\n",
	})
	if a := s.Post("/v1/schedules", `{"name":"tick","agent":"helper","every":"1h","timezone":"UTC","paused":true}`); a.Status != http.StatusCreated {
		t.Fatal(a.Status, a.Body)
	}
	p := newTab(t, b, s.URL)
	p.open("#/schedules")
	p.until(`document.querySelectorAll("main article").length === 3`)
	p.until(`[...document.querySelectorAll("main li strong")].filter((e) => e.innerText === "morning").length === 7`)
	p.press("main article[aria-label=morning]", "Pause")
	p.until(`document.querySelector("main article[aria-label=morning]").dataset.state === "paused"`)
	p.until(`[...document.querySelectorAll("main li")].some((e) => e.innerText.startsWith("morning") && e.innerText.endsWith("(paused)"))`)
	p.until(`[...document.querySelectorAll("main li")].some((e) => e.innerText.startsWith("tick") && e.innerText.split(",").length === 6 && e.innerText.endsWith(" more (paused)"))`)
	p.press("main article[aria-label=tick]", "Delete")
	p.press("dialog", "Delete")
	p.until(`document.querySelectorAll("main article").length === 2`)
	p.until(`![...document.querySelectorAll("main article[aria-label=weekly] button")].some((e) => e.innerText === "Delete")`) // a file has it
	p.press("main article[aria-label=morning]", "Run now")
	p.until(`location.hash.startsWith("#/runs/")`)
	p.until(`document.querySelector("main").innerText.includes("<b id=made>up</b>")`)
}

// A job of a run is listed while the run works. Its output is shown, not obeyed, and a button ends it.
func testJobs(t *testing.T, b context.Context) {
	if held := sandbox.New(sandbox.Options{Workspace: t.TempDir()}).Support(); !held.Files {
		t.Skip("no sandbox: " + held.Missing)
	}
	s := servertest.Program(t, servertest.Files{
		"config.yaml": "model: builtin:script\nclients: [{type: builtin, script: rules.yaml}]\n",
		"rules.yaml": `rules:
  - match: {turn: 1}
    tool_calls: [{name: execute_command, arguments: {command: "echo '<b id=made>up</b>'; sleep 600", background: true, ready: up}}]
  - match: {turn: 2}
    reply: done
    delay: 60s
`,
		"agents/works/config.yaml": "name: works\nversion: \"1.0\"\ninstructions: Work.\nglobal_tools: [execute_command]\n",
	})
	id := begin(t, s, "works", "work")
	p := newTab(t, b, s.URL)
	p.open("#/runs/" + id)
	p.until(`document.querySelector(".jobs summary")?.innerText.includes("running")`)
	p.run(`document.querySelector(".jobs summary").click()`)
	p.until(`document.querySelector(".jobs .output").innerText.includes("<b id=made>up</b>")`)
	p.press(".jobs", "End")
	p.until(`document.querySelector(".jobs summary").innerText.includes("killed")`)
	if eval[bool](p, `document.querySelector("#made") !== null`) {
		t.Error("the output became an element")
	}
	p.press(".actions", "Cancel")
	p.until(`document.querySelector(".run-head .status.is-canceled") !== null`)
}

// A run is started in one tab and answered there; another tab sees it happen.
func testAnswer(t *testing.T, b context.Context, s *servertest.Server) {
	one := newTab(t, b, s.URL)
	one.open("#/agents/release")
	one.press(".starters", "Write the notes of the next release")
	if got := eval[string](one, `document.querySelector("#prompt").value`); got != "Write the notes of the next release" {
		t.Errorf("the starter is not in the form: %q", got)
	}
	one.press(".begin", "Start run")
	hash := one.hash("#/runs/")
	two := newTab(t, b, s.URL)
	two.open(hash)
	for _, p := range []*tab{one, two} {
		p.until(`document.querySelector('[data-node="review"].waiting') !== null`)
		p.sees("Publish these notes?")
		if n := eval[int](p, `document.querySelectorAll(".asks table").length`); n != 1 {
			t.Errorf("the question is not shown as Markdown: %d tables", n)
		}
	}
	three := newTab(t, b, s.URL)
	three.open("#/questions")
	three.sees(strings.TrimPrefix(hash, "#/runs/"))
	one.press(".asks", "publish")
	for _, p := range []*tab{one, two} {
		p.until(`document.querySelector(".run-head .status.is-done") !== null`)
		p.until(`document.querySelector('[data-node="published"].done') !== null && document.querySelectorAll(".edge.taken").length > 6`)
		p.sees("Answer")
		if eval[bool](p, `document.querySelector('[data-node="discarded"]').classList.contains("done")`) {
			t.Error("a node is shown as done that did not run")
		}
	}
	three.until(`!document.body.innerText.includes(` + quote(strings.TrimPrefix(hash, "#/runs/")) + `)`)
	// The failures are in the timeline, with their place.
	one.press(".slim", "problems")
	one.until(`[...document.querySelectorAll(".list .row.is-failed")].some((r) => r.innerText.includes("pages.idx: no such file"))`)
	// A tool call shows its arguments and its result.
	one.press(".slim", "tools")
	one.until(`[...document.querySelectorAll(".list .row.tool")].some((r) => (r.click(), r.innerText.includes("fs_cat")))`)
	one.run(`[...document.querySelectorAll(".list .row.tool")].find((r) => r.innerText.includes("fs_cat")).click()`)
	one.until(`document.querySelector(".details").innerText.includes("CHANGES.md") && document.querySelector(".details").innerText.includes("names are checked")`)
	// A call of a model shows what it was asked.
	one.press(".slim", "models")
	one.run(`document.querySelector(".list .row.model").click()`)
	one.until(`document.querySelector(".details").innerText.includes("You plan the notes of a release.") && document.querySelector(".details").innerText.includes("Write the notes of the next release")`)
	// A node shows what it changed in the state.
	one.press(".slim", "nodes")
	one.run(`[...document.querySelectorAll(".list .row.node")].find((r) => r.innerText.startsWith("collect")).click()`)
	one.until(`[...document.querySelectorAll(".details .diff ins")].some((i) => i.innerText.includes("server: keys are kept as hashes"))`)
}

// A page that is loaded again in the middle of a stream shows the same as one that was not.
func testReload(t *testing.T, b context.Context, s *servertest.Server, id string) {
	steady, p := newTab(t, b, s.URL), newTab(t, b, s.URL)
	steady.open("#/runs/" + id)
	p.open("#/runs/" + id)
	for _, node := range []string{"plan", "security"} {
		p.until(`document.querySelector('[data-node="` + node + `"]:is(.running, .done)') !== null`)
		p.reload()
	}
	for _, q := range []*tab{steady, p} {
		q.until(`document.querySelector('[data-node="review"].waiting') !== null`)
	}
	const shown = `[...document.querySelectorAll(".list .row")].map((r) => r.querySelector(".title").innerText).join()`
	want := eval[string](steady, shown)
	if got := eval[string](p, shown); got != want || !strings.Contains(want, "review") {
		t.Errorf("after the reload the timeline is\n%s\nnot\n%s", got, want)
	}
	if a, b := eval[string](p, `document.querySelector(".number").innerText`), eval[string](steady, `document.querySelector(".number").innerText`); a != b {
		t.Errorf("%s and %s", a, b)
	}
}

// A server that dies and comes back: the page says that the connection is lost, and goes on where it was.
func testRestart(t *testing.T, b context.Context) {
	s := servertest.Program(t, files(t, "api: {limits: {max_body_bytes: 1048576}}\n"))
	id := begin(t, s, "release", "Write the notes")
	p := newTab(t, b, s.URL)
	p.allow("net::ERR")
	p.open("#/runs/" + id)
	p.until(`document.querySelector('[data-node="plan"].done') !== null`)
	s.Kill()
	p.sees("Connection lost")
	s.Begin()
	p.until(`document.querySelector(".connection").hidden`)
	p.until(`document.querySelector('[data-node="review"].waiting') !== null`)
	if n := eval[int](p, `[...document.querySelectorAll(".list .row.node .title")].filter((e) => e.innerText === "plan").length`); n != 1 {
		t.Errorf("the node plan is shown %d times", n)
	}
	p.press(".asks", "publish")
	p.until(`document.querySelector(".run-head .status.is-done") !== null`)
}

// A run with more than 10,000 events (in the sample 1,200) can be scrolled from end to end with a small document.
func testMany(t *testing.T, b context.Context, s *servertest.Server) {
	id := begin(t, s, "many", "go")
	p := newTab(t, b, s.URL)
	p.open("#/runs/" + id)
	p.until(`document.querySelector(".run-head .status.is-done") !== null`)
	p.until(fmt.Sprintf(`Number(document.querySelector(".number").innerText.replace(/\D/g, "")) > %d`, 2*numbers()))
	if n := eval[int](p, `document.querySelectorAll("*").length`); n > 2500 {
		t.Errorf("the document has %d elements", n)
	}
	p.run(`(async () => {
		const list = document.querySelector(".list");
		for (let i = 0; i <= 20; i++) {
			list.scrollTop = (list.scrollHeight - list.clientHeight) * i / 20;
			list.dispatchEvent(new Event("scroll"));
			await new Promise((r) => requestAnimationFrame(r));
			const { top, bottom } = list.getBoundingClientRect();
			if (![...list.querySelectorAll(".row")].some((r) => r.getBoundingClientRect().top < bottom && r.getBoundingClientRect().bottom > top)) throw new Error("nothing is shown at " + i);
		}
	})()`)
	if n := eval[int](p, `document.querySelectorAll("*").length`); n > 2500 {
		t.Errorf("the document has %d elements after scrolling", n)
	}
	p.until(`[...document.querySelectorAll(".list .row .title")].some((r) => r.innerText === "done")`)
	// The keyboard goes everywhere, too.
	p.run(`(() => { const list = document.querySelector(".list"); list.focus(); for (const key of ["Home", "End", "ArrowUp"]) list.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true })); })()`)
	p.until(`document.querySelector('.list .row[aria-selected="true"]') !== null && document.querySelector(".list").getAttribute("aria-activedescendant") !== null`)
	// So does the search.
	p.run(`(() => { const f = document.querySelector(".slim input"); f.value = "Number 539"; f.dispatchEvent(new Event("input")); })()`)
	p.until(`document.querySelectorAll(".list .row.model").length === 1`)
}

// What models, tools and authors of agents write does nothing.
func testHostile(t *testing.T, b context.Context, s *servertest.Server) {
	id := begin(t, s, "hostile", "hostile")
	p := newTab(t, b, s.URL)
	innocent := func(where string) {
		t.Helper()
		if v := eval[any](p, `window.pwned ?? null`); v != nil {
			t.Errorf("%s: script number %v ran", where, v)
		}
		bad := eval[[]string](p, `[...document.querySelectorAll("main script, main iframe, main style, main form[action], main object, main embed, main [style*=url], main img[src^=http], main a[href]:not([href^=http]):not([href^='#/'])")]
			.map((e) => e.outerHTML.slice(0, 120)).concat([...document.querySelectorAll("*")].flatMap((e) => [...e.attributes].filter((a) => a.name.startsWith("on")).map((a) => e.localName + " " + a.name)))`)
		if len(bad) > 0 {
			t.Errorf("%s: %q", where, bad)
		}
		if links := eval[[]string](p, `[...document.querySelectorAll(".markdown a[href]")].filter((a) => !a.rel.includes("noopener") || a.target !== "_blank").map((a) => a.outerHTML)`); len(links) > 0 {
			t.Errorf("%s: links %q", where, links)
		}
	}
	for hash, text := range map[string]string{"#/agents/hostile": "<script>window.pwned = 20</script> a description", "#/runs": "hostile", "#/questions": "<script>window.pwned = 23</script>", "#/runs/" + id: "<script>window.pwned = 1</script>"} {
		p.open(hash)
		p.sees(text)
		innocent(hash)
	}
	p.open("#/runs/" + id)
	p.until(`document.querySelector(".asks form") !== null`)
	for i := range eval[int](p, `document.querySelectorAll(".list .row").length`) {
		p.run(fmt.Sprintf(`document.querySelectorAll(".list .row")[%d].click()`, i))
		p.until(`document.querySelector(".details header") !== null`)
		p.settle()
		innocent(fmt.Sprintf("row %d", i))
	}
	p.press(".run-head", "Fork")
	p.until(`document.querySelector("dialog textarea") !== null`)
	innocent("fork")
	p.press("dialog", "Close")
	p.run(`document.dispatchEvent(new KeyboardEvent("keydown", { key: "Escape", bubbles: true }))`)
	p.open("#/runs/" + id)
	p.press(".asks", "<img src=x onerror=window.pwned=24>")
	p.until(`document.querySelector(".run-head .status.is-done") !== null`)
	innocent("done")
	p.open("#/chat")
	p.write(".composer textarea", "hostile\r")
	p.until(`document.querySelector(".turn:not(.mine):not(.live)") !== null && document.querySelector(".talk").innerText.includes("window.pwned = 1")`)
	innocent("chat")
	p.allow("404")
	p.open("#/runs/%3Cimg%20src=x%20onerror=window.pwned=40%3E?row=%3Cscript%3E")
	p.sees("run")
	innocent("address")
}

// A conversation streams, folds the calls of tools, is kept, and can be stopped.
func testChat(t *testing.T, b context.Context, s *servertest.Server) {
	p := newTab(t, b, s.URL)
	p.open("#/chat?agent=release")
	p.sees("release is a graph and works in runs")
	p.press(".talk", "Start a run")
	p.sees("Start run")
	if eval[bool](p, `document.body.innerText.includes("Chat with it")`) {
		t.Error("a graph is offered as a partner")
	}
	p.visit("#/agents/guide")
	p.press(".begin", "Chat with it")
	p.until(`document.querySelector("header.title select").value === "agent:guide" && !document.querySelector("header.title select").disabled`)
	// What the server would not take is not lost.
	p.run(`document.querySelector(".composer textarea").value = "x".repeat(1100000)`)
	p.press(".composer", "Send")
	p.sees("The message was not sent")
	if got := eval[string](p, `document.querySelector(".composer textarea").value.length + " " + document.querySelectorAll(".turn.mine").length + " " + location.hash`); got != "1100000 0 #/chat?agent=guide" {
		t.Errorf("after a message that is too long: %s", got)
	}
	p.run(`document.querySelector(".composer textarea").value = ""`)
	p.write(".composer textarea", "files\r")
	hash := p.hash("#/chat/")
	p.until(`document.querySelector("details.tool:not([open])") !== null && document.querySelector(".talk").innerText.includes("These are there")`)
	p.until(`document.querySelector(".turn.live") === null`)
	p.press(".talk", eval[string](p, `document.querySelector("details.tool summary").textContent.trim()`))
	p.sees("CHANGES.md")
	p.write(".composer textarea", "count slowly\r")
	p.sees("one two")
	if !eval[bool](p, `document.querySelector(".turn.live") !== null`) {
		t.Error("the answer came in one piece")
	}
	p.press(".composer", "Stop")
	p.sees("Stopped.")
	p.open(hash)
	p.sees("These are there")
	for !eval[bool](p, `document.querySelector(".talk").innerText.includes("count slowly")`) { // it is kept once the server knows
		p.reload()
		p.sees("These are there")
		p.settle()
	}
	if eval[bool](p, `document.querySelector(".talk").innerText.includes("sixteen")`) {
		t.Error("the stopped answer went on")
	}
	p.run(`(() => { const files = new DataTransfer(); files.items.add(new File(["The boats are blue."], "boats.txt", { type: "text/plain" })); files.items.add(new File(["x".repeat(1 << 20)], "large.txt")); document.querySelector(".chat").dispatchEvent(new DragEvent("drop", { dataTransfer: files, bubbles: true, cancelable: true })); })()`)
	p.sees("large.txt (1.0 MiB) was not attached")
	dir := t.TempDir()
	var chosen []string
	for _, name := range []string{"cars", "trees"} { // both at once
		file := filepath.Join(dir, name+".txt")
		if err := os.WriteFile(file, []byte("The "+name+" are green."), 0o600); err != nil {
			t.Fatal(err)
		}
		chosen = append(chosen, file)
	}
	p.do(chromedp.SetUploadFiles(chromedp.CSS(".composer input[type=file]"), chosen))
	p.until(`[...document.querySelectorAll(".files .chip")].map((c) => c.textContent).join() === "boats.txt,cars.txt,trees.txt"`)
	p.write(".composer textarea", "what color\r")
	for _, text := range []string{"The boats are blue.", "The cars are green.", "The trees are green."} {
		p.sees(text)
	}
}

// A first message that fails is sent again to another model, and leaves no empty session. The model of a conversation can change.
func testChatFails(t *testing.T, b context.Context, s *servertest.Server) {
	p := newTab(t, b, s.URL, chromedp.WithNewBrowserContext())
	p.open("#/chat")
	choose := func(model string) {
		t.Helper()
		p.until(`[...document.querySelectorAll("header.title select option")].some((o) => o.value === "model:` + model + `")`)
		p.run(`(() => { const s = document.querySelector("header.title select"); s.value = "model:` + model + `"; s.dispatchEvent(new Event("change")); })()`)
	}
	choose("builtin:script")
	p.write(".composer textarea", "the model fails\r")
	p.sees("Incorrect API key provided")
	p.until(`document.querySelector(".turn.live") === null && location.hash === "#/chat"`)
	if text := eval[string](p, `document.querySelector(".talk .failure").innerText`); strings.Contains(text, "/v1/") {
		t.Errorf("the error names the API: %s", text)
	}
	choose("builtin:echo")
	p.press(".talk", "Try again")
	hash := p.hash("#/chat/")
	p.until(`document.querySelector(".turn.live") === null && document.querySelector(".talk .turn:not(.mine)")?.innerText.includes("builtin:echo")`)
	p.until(`document.querySelector("header.title h2").innerText === "the model fails" && document.querySelectorAll(".turn.mine").length === 1`)
	p.until(`document.querySelector('.side a[aria-current="page"]') !== null`)
	if n := eval[int](p, `[...document.querySelectorAll(".side a")].filter((a) => a.innerText.includes("Empty session")).length`); n != 0 {
		t.Errorf("%d empty sessions are left", n)
	}
	choose("builtin:script")
	p.write(".composer textarea", "another model\r")
	p.until(`document.querySelectorAll(".turn:not(.mine):not(.live)").length === 2 && document.querySelector(".talk .turn:last-child").innerText.includes("builtin:script")`)
	p.open(hash)
	p.until(`document.querySelector("header.title select").value === "model:builtin:script"`)
}

// A run is forked with a changed state, and both are compared.
func testFork(t *testing.T, b context.Context, s *servertest.Server, id string) {
	p := newTab(t, b, s.URL)
	p.open("#/runs/" + id)
	p.until(`document.querySelector('[data-node="review"].waiting') !== null`)
	p.press(".slim", "nodes") // which is a part of the address
	p.press(".run-head", "Compare")
	p.until(`document.querySelector("dialog") !== null`)
	p.run(`history.back()`)
	p.until(`document.querySelector("dialog") === null`)
	p.press(".run-head", "Fork")
	p.until(`document.querySelector("dialog textarea") !== null`)
	p.run(`(() => {
		const label = [...document.querySelectorAll("dialog .fields label")].find((l) => l.querySelector("code").innerText === "notes");
		const area = document.getElementById(label.htmlFor);
		area.value = "Other **notes**";
		area.dispatchEvent(new Event("input"));
	})()`)
	p.press("dialog", "Start the fork")
	p.until(`location.hash.startsWith("#/runs/") && location.hash !== "#/runs/` + id + `"`)
	p.until(`[...document.querySelectorAll(".asks strong")].some((e) => e.innerText === "notes")`)
	p.press(".asks", "discard")
	p.until(`document.querySelector(".run-head .status.is-done") !== null`)
	// The last step of a run that is done has nothing behind it, so a fork begins before it.
	p.press(".run-head", "Fork")
	p.until(`document.querySelector("dialog textarea") !== null`)
	first := eval[string](p, `location.hash`)
	p.press("dialog", "Start the fork")
	p.until(`location.hash.startsWith("#/runs/") && location.hash !== ` + quote(first))
	p.visit(first)
	p.until(`document.querySelector(".run-head .id")?.innerText === ` + quote(strings.TrimPrefix(first, "#/runs/")))
	p.press(".details", "Compare")
	p.hash("#/compare/")
	p.until(`document.querySelectorAll(".diff ins").length > 0`)
	p.until(`[...document.querySelectorAll(".diff ins")].some((i) => i.innerText.includes("Other **notes**"))`)
	p.open("#/runs")
	p.until(`document.querySelectorAll("tbody tr").length >= 2`)
	p.press("tbody", "release")
	p.hash("#/runs/")
}

// A run that waits is canceled, and asks again once it is resumed. On a phone its graph is as wide as there is room.
func testCancel(t *testing.T, b context.Context, s *servertest.Server) {
	id := begin(t, s, "hostile", "to be canceled")
	p := newTab(t, b, s.URL)
	p.size(390, 844, "light")
	p.open("#/runs/" + id)
	p.until(`document.querySelector(".asks form") !== null`)
	p.press(".slim", "graph")
	p.until(`document.querySelector(".drawing svg").getBoundingClientRect().width > 200`)
	p.press(".actions", "Cancel")
	p.until(`document.querySelector(".run-head .status.is-canceled") !== null && document.querySelector(".asks form") === null`)
	p.press(".actions", "Resume")
	p.until(`document.querySelector(".asks form") !== null`)
	p.allow("/v1/runs/" + id) // a request that is on its way when the run is deleted
	p.press(".actions", "Delete")
	p.press("dialog", "Delete")
	p.hash("#/runs")
	p.until(`document.querySelector("tbody tr") !== null && !document.body.innerText.includes(` + quote(id) + `)`)
}

// A run that has reached the budget of its request goes on with a higher one.
func testBudget(t *testing.T, b context.Context, s *servertest.Server) {
	var made struct{ ID string }
	s.Post("/v1/agents/release/runs", `{"prompt": "Write the notes", "budget": {"tokens": 1, "usd": 3}, "wait": 60}`).JSON(t, &made)
	p := newTab(t, b, s.URL)
	p.open("#/runs/" + made.ID)
	p.press(".actions", "Resume")
	p.until(`document.querySelector("#budget-tokens").value === "2" && document.querySelector("#budget-usd").value === "6"`)
	p.sees("the budget of 1 tokens is used up")
	p.run(`document.querySelector("#budget-tokens").value = "500000"`)
	p.press("dialog", "Resume")
	p.until(`document.querySelector(".asks form") !== null`)
}

// Everything can be reached with the keyboard, and the focus is seen.
func testKeyboard(t *testing.T, b context.Context, s *servertest.Server, id string) {
	begin(t, s, "hostile", "another run")
	p := newTab(t, b, s.URL, chromedp.WithNewBrowserContext()) // the theme is kept
	p.open("#/runs")
	p.until(`document.querySelectorAll("tbody tr").length > 1 && document.body.innerText.includes(` + quote(id) + `)`)
	for _, step := range []struct{ keys, js string }{
		{"?", `document.querySelector("dialog").innerText.includes("Everywhere")`},
		{"\u001b", `document.querySelector("dialog") === null`},
		{"j", `document.activeElement.closest("tbody tr") !== null`},
		{"x", `document.activeElement.closest("tr").querySelector("input").checked`},
		{"/", `document.activeElement.type === "search"`},
		{"\u001b", `document.activeElement === document.body`},
		{"ga", `location.hash === "#/agents"`},
		{"gcto write", `location.hash === "#/chat" && document.activeElement.value === "to write"`}, // and nothing of it is a shortcut
		{"\u001b", `document.activeElement.localName !== "textarea"`},
		{"gq", `location.hash === "#/questions" && document.querySelectorAll("main .card").length > 1`},
		{"jj", `document.querySelectorAll("main .card")[1] === document.activeElement`}, // and not the field of the first one
		{"k", `document.querySelector("main .card") === document.activeElement`},
		{"gr", `location.hash === "#/runs"`},
	} {
		p.keys(step.keys)
		p.until(step.js)
	}
	before := eval[string](p, `document.documentElement.dataset.theme ?? ""`)
	p.keys("t")
	p.until(`(document.documentElement.dataset.theme ?? "") !== ` + quote(before))
	p.reload()
	p.until(`(document.documentElement.dataset.theme ?? "") !== ` + quote(before))
	p.open("#/runs")
	p.until(`document.querySelectorAll("tbody tr").length > 1`)
	for range 25 { // Tab goes through the head into the table, and never gets lost
		p.keys("\t")
		if hidden := eval[string](p, `(() => { const e = document.activeElement; const s = getComputedStyle(e); const r = e.getBoundingClientRect(); return e === document.body || (s.outlineStyle !== "none" && r.width > 0) || e.id === "main" ? "" : e.outerHTML.slice(0, 200) })()`); hidden != "" {
			t.Errorf("the focus is not seen: %s", hidden)
		}
	}
}

// Nothing serious is found by axe, at two widths, light and dark. The sample looks at each view once.
func testAccessible(t *testing.T, b context.Context, s *servertest.Server, id string) {
	axe, err := os.ReadFile(filepath.Join(npmtest.Install(t, "testdata/npm"), "axe-core", "axe.min.js"))
	if err != nil {
		t.Fatal(err)
	}
	p := newTab(t, b, s.URL)
	p.open("#/runs/" + id)
	p.until(`document.querySelector('[data-node="review"].waiting') !== null`)
	p.run(string(axe) + "\n;undefined")
	var chat struct{ ID string }
	s.Post("/v1/sessions", `{"agent": "guide"}`).JSON(t, &chat)
	if a := s.Post("/v1/sessions/"+chat.ID+"/completions", `{"prompt": "files"}`); a.Status != http.StatusOK {
		t.Fatal(a.Body)
	}
	looks := []struct {
		width, height int64
		theme         string
	}{{1440, 900, "light"}, {390, 844, "dark"}, {1440, 900, "dark"}, {390, 844, "light"}}
	for i, view := range []struct{ name, hash, shows string }{
		{"runs", "#/runs", `document.querySelector("tbody tr") !== null`},
		{"run", "#/runs/" + id, `document.querySelector(".asks form") !== null && document.querySelector(".graph .node") !== null`},
		{"row", "#/runs/" + id + "?row=node-2", `document.querySelector(".details header") !== null`},
		{"questions", "#/questions", `document.querySelector("main form.ask") !== null`},
		{"chat", "#/chat/" + chat.ID, `document.querySelector("details.tool") !== null`},
		{"agent", "#/agents/release", `document.querySelector(".graph .node") !== null`},
		{"dialog", "#/runs", `document.querySelector("dialog[open]") !== null`},
	} {
		for j, look := range looks {
			if !sample.Full() && j != i%len(looks) {
				continue
			}
			t.Run(fmt.Sprintf("%s_%d_%s", view.name, look.width, look.theme), func(t *testing.T) {
				p.t = t
				p.size(look.width, look.height, look.theme)
				p.visit(view.hash)
				if view.name == "dialog" {
					p.until(`document.querySelector("tbody tr") !== null`) // the dialog of the view before is closed
					p.keys("?")
					p.until(`document.querySelector("dialog") !== null`)
				}
				p.until(view.shows)
				p.settle()
				findings := eval[[]string](p, `axe.run(document, { resultTypes: ["violations"] }).then((r) => r.violations.filter((v) => ["serious", "critical"].includes(v.impact)).map((v) => v.id + ": " + v.nodes.map((n) => n.html.slice(0, 160) + " " + n.failureSummary.slice(0, 300)).slice(0, 4).join("\n   ")))`)
				for _, f := range findings {
					t.Error(f)
				}
				for _, width := range []int64{1440, 768, 390} {
					p.size(width, 844, look.theme)
					p.settle()
					if wide := eval[int](p, `document.documentElement.scrollWidth - innerWidth`); wide > 0 {
						t.Errorf("the page is %d pixels wider than a window of %d", wide, width)
					}
				}
			})
		}
	}
}

// A server with keys shows nothing before a key is given.
func testSignIn(t *testing.T, b context.Context) {
	key, id, hash := auth.NewKey()
	s := servertest.Program(t, files(t, fmt.Sprintf("api: {auth: {keys: [{subject: ada, key_id: %q, key_hash: %q, scopes: ['*']}]}}\n", id, hash)))
	p := newTab(t, b, s.URL)
	p.allow("401")
	p.open("#/agents/release")
	p.sees("Sign in")
	p.write("#key", "loki_wrong\r")
	p.sees("The server rejected this key.")
	p.run(`document.querySelector("#key").value = ""`)
	p.write("#key", key+"\r")
	p.sees("Start run")
	if where := eval[string](p, `location.hash + " " + JSON.stringify(localStorage)`); !strings.HasPrefix(where, "#/agents/release ") || strings.Contains(where, key) {
		t.Errorf("after the sign-in: %s", where)
	}
	p.reload()
	p.sees("Start run")
	p.press(".tools", "Sign out")
	p.sees("Sign in")
	if eval[bool](p, `JSON.stringify(sessionStorage).includes(`+quote(key)+`)`) {
		t.Error("the key is still kept")
	}
}
