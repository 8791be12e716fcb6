package page

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	cdpruntime "github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"loki/internal/process/npmtest"
)

// patience is how long a test waits for something to be seen. Machines of tests are slow.
const patience = 45 * time.Second

// server is a real one, of the program as users have it, with the agents of testdata.
type server struct {
	url     string // empty before it serves for the first time
	home    string
	work    string
	bin     string
	env     []string
	process *os.Process
}

// build returns the program, which is built once.
var build = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "loki-page-")
	if err != nil {
		return "", err
	}
	bin := filepath.Join(dir, "loki")
	out, err := exec.Command("go", "build", "-o", bin, "../../../cmd/loki").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return bin, nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if bin, err := build(); testing.Short() || err != nil {
		_ = err // reported by the test that needed it
	} else {
		_ = os.RemoveAll(filepath.Dir(bin))
	}
	os.Exit(code)
}

// prepare makes a home with a configuration and the agents.
func prepare(t *testing.T, extra string) *server {
	t.Helper()
	bin, err := build()
	if err != nil {
		t.Fatal(err)
	}
	s := &server{bin: bin, home: t.TempDir(), work: t.TempDir()}
	config := filepath.Join(s.home, ".config", "loki")
	agents := filepath.Join(config, "agents")
	if err := os.CopyFS(agents, os.DirFS("testdata/agents")); err != nil {
		t.Fatal(err)
	}
	scripts, err := filepath.Glob(filepath.Join(agents, "*", "scripts", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, script := range scripts {
		if err := os.Chmod(script, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{
		filepath.Join(config, "config.yaml"): `model: builtin:script
clients:
  - type: builtin
    script: ` + filepath.Join(agents, "rules.yaml") + `
    models:
      - {name: script, input_price: 3, output_price: 15, cached_input_price: 0.3, supports_function_calling: true}
      - {name: echo}
` + extra,
		filepath.Join(s.work, "CHANGES.md"): "names are checked\n",
		filepath.Join(s.work, "evil.html"):  `<img src=x onerror="window.pwned = 30"><script>window.pwned = 31</script>`,
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s.env = []string{"HOME=" + s.home, "PATH=" + os.Getenv("PATH"), "TMPDIR=" + t.TempDir()}
	return s
}

// loki runs the program.
func (s *server) loki(t *testing.T, args ...string) string {
	t.Helper()
	c := exec.CommandContext(t.Context(), s.bin, args...)
	c.Dir, c.Env = s.work, s.env
	out, err := c.Output()
	if err != nil {
		t.Fatalf("loki %s: %v\n%s", strings.Join(args, " "), err, err.(*exec.ExitError).Stderr)
	}
	return string(out)
}

// serve starts the server, for the second time at the same address. The test ends it.
func (s *server) serve(t *testing.T) *server {
	t.Helper()
	c := exec.Command(s.bin, "--serve", strings.TrimPrefix(cmp.Or(s.url, "127.0.0.1:0"), "http://"))
	c.Dir, c.Env = s.work, s.env
	pipe, err := c.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	s.process = c.Process
	address := make(chan string, 1)
	var said strings.Builder
	done := make(chan struct{})
	go func() { // ends with the server
		defer close(done)
		lines := bufio.NewScanner(pipe)
		for lines.Scan() {
			said.WriteString(lines.Text() + "\n")
			if _, where, ok := strings.Cut(lines.Text(), "http://"); ok && len(address) == 0 {
				address <- "http://" + strings.Fields(where)[0]
			}
		}
	}()
	t.Cleanup(func() {
		_ = c.Process.Signal(syscall.SIGTERM)
		timer := time.AfterFunc(20*time.Second, func() { _ = c.Process.Kill() })
		defer timer.Stop()
		<-done
		_ = c.Wait()
		if t.Failed() {
			t.Logf("the server said:\n%s", said.String())
		}
	})
	select {
	case s.url = <-address:
	case <-done:
		t.Fatalf("the server ended:\n%s", said.String())
	case <-time.After(patience):
		t.Fatal("the server does not serve")
	}
	return s
}

// post calls the API and returns the answer.
func (s *server) post(t *testing.T, path, body string) map[string]any {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var answer map[string]any
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil || response.StatusCode >= 300 {
		t.Fatalf("POST %s: %d %v %v", path, response.StatusCode, answer, err)
	}
	return answer
}

// run starts an agent and returns the id of its run.
func (s *server) run(t *testing.T, agent, prompt string) string {
	t.Helper()
	body, err := json.Marshal(map[string]string{"prompt": prompt})
	if err != nil {
		t.Fatal(err)
	}
	id, _ := s.post(t, "/v1/agents/"+agent+"/runs", string(body))["id"].(string)
	if id == "" {
		t.Fatal("the run has no id")
	}
	return id
}

// browser starts Chromium. The test is skipped where there is none.
func browser(t *testing.T) context.Context {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a browser")
	}
	if runtime.GOOS != "linux" {
		t.Skip("the browser of Debian is on Linux only")
	}
	var found string
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			found = path
			break
		}
	}
	if found == "" {
		t.Skip("chromium is not installed")
	}
	options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]), chromedp.ExecPath(found), chromedp.NoSandbox, chromedp.UserDataDir(t.TempDir()),
		chromedp.WSURLReadTimeout(patience), chromedp.WindowSize(1440, 900))
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
	ctx context.Context
	url string

	mu      sync.Mutex
	allowed []string // parts of messages of the console that are meant
}

func newTab(t *testing.T, b context.Context, url string) *tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(b)
	t.Cleanup(cancel)
	p := &tab{t: t, ctx: ctx, url: url}
	if err := chromedp.Do(ctx); err != nil {
		t.Fatal(err)
	}
	err := chromedp.Listen(ctx, func(ev any) {
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
			if to := ev.Request.URL; !strings.HasPrefix(to, url+"/") && !strings.HasPrefix(to, "data:") && to != "about:blank" {
				p.report("a request to %s", to)
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	call(p, network.Enable, network.EnableParams{})
	call(p, log.Enable, cdp.Empty{})
	return p
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

// open goes to an address of the page.
func (p *tab) open(hash string) {
	p.t.Helper()
	p.do(chromedp.Navigate("about:blank"), chromedp.Navigate(p.url+"/"+hash), chromedp.WaitReady(chromedp.CSS("main *")))
}

func (p *tab) reload() {
	p.t.Helper()
	p.do(chromedp.Reload())
}

// keys presses keys, of the element with the focus.
func (p *tab) keys(keys string) {
	p.t.Helper()
	p.do(chromedp.KeyEvent(keys))
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
	s := prepare(t, "").serve(t)
	t.Run("answer_in_two_tabs", func(t *testing.T) { testAnswer(t, b, s) })
	t.Run("reload_in_a_stream", func(t *testing.T) { testReload(t, b, s) })
	t.Run("many_events", func(t *testing.T) { testMany(t, b, s) })
	t.Run("hostile", func(t *testing.T) { testHostile(t, b, s) })
	t.Run("chat", func(t *testing.T) { testChat(t, b, s) })
	t.Run("fork_and_compare", func(t *testing.T) { testFork(t, b, s) })
	t.Run("keyboard", func(t *testing.T) { testKeyboard(t, b, s) })
	t.Run("accessible", func(t *testing.T) { testAccessible(t, b, s) })
}

// A run is started in one tab and answered there; another tab sees it happen.
func testAnswer(t *testing.T, b context.Context, s *server) {
	one := newTab(t, b, s.url)
	one.open("#/agents/release")
	one.press(".starters", "Write the notes of the next release")
	if got := eval[string](one, `document.querySelector("#prompt").value`); got != "Write the notes of the next release" {
		t.Errorf("the starter is not in the form: %q", got)
	}
	one.press(".begin", "Start run")
	hash := one.hash("#/runs/")
	two := newTab(t, b, s.url)
	two.open(hash)
	two.until(`document.querySelector(".run-head .status.is-running") !== null`)
	for _, p := range []*tab{one, two} {
		p.until(`document.querySelector('[data-node="review"].waiting') !== null`)
		p.sees("Publish these notes?")
		if n := eval[int](p, `document.querySelectorAll(".asks table").length`); n != 1 {
			t.Errorf("the question is not shown as Markdown: %d tables", n)
		}
	}
	three := newTab(t, b, s.url)
	three.open("#/questions")
	three.sees("Publish these notes?")
	one.press(".asks", "publish")
	for _, p := range []*tab{one, two} {
		p.until(`document.querySelector(".run-head .status.is-done") !== null`)
		p.until(`document.querySelector('[data-node="published"].done') !== null && document.querySelectorAll(".edge.taken").length > 6`)
		p.sees("Answer")
		if eval[bool](p, `document.querySelector('[data-node="discarded"]').classList.contains("done")`) {
			t.Error("a node is shown as done that did not run")
		}
	}
	three.sees("Nothing waits for an answer.")
	// The failures are in the timeline, with their place.
	one.press(".slim", "problems")
	one.until(`document.querySelectorAll(".list .row.is-failed").length >= 2`)
	one.until(`[...document.querySelectorAll(".list .row")].some((r) => r.innerText.includes("pages.idx: no such file"))`)
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
func testReload(t *testing.T, b context.Context, s *server) {
	id := s.run(t, "release", "Write the notes")
	steady, p := newTab(t, b, s.url), newTab(t, b, s.url)
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
func TestRestart(t *testing.T) {
	b := browser(t)
	s := prepare(t, "").serve(t)
	id := s.run(t, "release", "Write the notes")
	p := newTab(t, b, s.url)
	p.allow("net::ERR")
	p.open("#/runs/" + id)
	p.until(`document.querySelector('[data-node="plan"].done') !== null`)
	if err := s.process.Kill(); err != nil {
		t.Fatal(err)
	}
	p.sees("Connection lost")
	s.serve(t)
	p.until(`document.querySelector(".connection").hidden`)
	p.until(`document.querySelector('[data-node="review"].waiting') !== null`)
	if n := eval[int](p, `[...document.querySelectorAll(".list .row.node .title")].filter((e) => e.innerText === "plan").length`); n != 1 {
		t.Errorf("the node plan is shown %d times", n)
	}
	p.press(".asks", "publish")
	p.until(`document.querySelector(".run-head .status.is-done") !== null`)
}

// A run with more than 10,000 events can be scrolled from end to end with a small document.
func testMany(t *testing.T, b context.Context, s *server) {
	id := s.run(t, "many", "go")
	p := newTab(t, b, s.url)
	p.open("#/runs/" + id)
	p.until(`document.querySelector(".run-head .status.is-done") !== null`)
	p.until(`Number(document.querySelector(".number").innerText.replace(/\D/g, "")) > 10000`)
	if n := eval[int](p, `document.querySelectorAll("*").length`); n > 2500 {
		t.Errorf("the document has %d elements", n)
	}
	middle := eval[float64](p, `(async () => {
		const list = document.querySelector(".list");
		const took = [];
		for (let i = 0; i <= 60; i++) {
			const began = performance.now();
			list.scrollTop = (list.scrollHeight - list.clientHeight) * i / 60;
			list.dispatchEvent(new Event("scroll"));
			list.getBoundingClientRect();
			took.push(performance.now() - began);
			await new Promise((r) => requestAnimationFrame(r));
			if (!document.querySelector(".list .row")) throw new Error("nothing is shown at " + i);
		}
		return took.sort((a, b) => a - b)[30];
	})()`)
	t.Logf("half of 60 jumps took less than %.1f ms", middle)
	if middle > 100 {
		t.Errorf("half of the jumps took more than %.0f ms", middle)
	}
	p.until(`[...document.querySelectorAll(".list .row .title")].some((r) => r.innerText === "done")`)
	// The keyboard goes everywhere, too.
	p.run(`(() => { const list = document.querySelector(".list"); list.focus(); for (const key of ["Home", "End", "ArrowUp"]) list.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true })); })()`)
	p.until(`document.querySelector('.list .row[aria-selected="true"]') !== null && document.querySelector(".list").getAttribute("aria-activedescendant") !== null`)
	// So does the search.
	p.run(`(() => { const f = document.querySelector(".slim input"); f.value = "Number 3399"; f.dispatchEvent(new Event("input")); })()`)
	p.until(`document.querySelectorAll(".list .row.model").length === 1`)
}

// What models, tools and authors of agents write does nothing.
func testHostile(t *testing.T, b context.Context, s *server) {
	id := s.run(t, "hostile", "hostile")
	p := newTab(t, b, s.url)
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
		p.run(`new Promise((r) => setTimeout(r, 300))`)
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
func testChat(t *testing.T, b context.Context, s *server) {
	p := newTab(t, b, s.url)
	p.open("#/chat?agent=guide")
	p.until(`document.querySelector("header.title select").value === "agent:guide"`)
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
	p.sees("count slowly")
	if eval[bool](p, `document.querySelector(".talk").innerText.includes("sixteen")`) {
		t.Error("the stopped answer went on")
	}
	p.run(`(() => { const files = new DataTransfer(); files.items.add(new File(["The boats are blue."], "boats.txt", { type: "text/plain" })); document.querySelector(".chat").dispatchEvent(new DragEvent("drop", { dataTransfer: files, bubbles: true, cancelable: true })); })()`)
	p.until(`document.querySelector(".files .chip") !== null`)
	p.write(".composer textarea", "what color\r")
	p.sees("The boats are blue.")
}

// A run is forked with a changed state, and both are compared.
func testFork(t *testing.T, b context.Context, s *server) {
	id := s.run(t, "release", "Write the notes")
	p := newTab(t, b, s.url)
	p.open("#/runs/" + id)
	p.until(`document.querySelector('[data-node="review"].waiting') !== null`)
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
	p.press(".details", "Compare")
	p.hash("#/compare/")
	p.until(`document.querySelectorAll(".diff ins").length > 0`)
	p.until(`[...document.querySelectorAll(".diff ins")].some((i) => i.innerText.includes("Other **notes**"))`)
	p.open("#/runs")
	p.until(`document.querySelectorAll("tbody tr").length >= 2`)
	p.press("tbody", "release")
	p.hash("#/runs/")
}

// Everything can be reached with the keyboard, and the focus is seen.
func testKeyboard(t *testing.T, b context.Context, s *server) {
	p := newTab(t, b, s.url)
	p.open("#/runs")
	p.until(`document.querySelectorAll("tbody tr").length > 1`)
	for _, step := range []struct{ keys, js string }{
		{"?", `document.querySelector("dialog").innerText.includes("Everywhere")`},
		{"\u001b", `document.querySelector("dialog") === null`},
		{"j", `document.activeElement.closest("tbody tr") !== null`},
		{"x", `document.activeElement.closest("tr").querySelector("input").checked`},
		{"/", `document.activeElement.type === "search"`},
		{"\u001b", `document.activeElement === document.body`},
		{"ga", `location.hash === "#/agents"`},
		{"gc", `location.hash === "#/chat"`},
		{"\u001b", `document.activeElement.localName !== "textarea"`},
		{"gq", `location.hash === "#/questions"`},
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
	p.run(`localStorage.clear()`)
	p.open("#/runs")
	p.until(`document.querySelectorAll("tbody tr").length > 1`)
	for range 25 { // Tab goes through the head into the table, and never gets lost
		p.keys("\t")
		if hidden := eval[string](p, `(() => { const e = document.activeElement; const s = getComputedStyle(e); const r = e.getBoundingClientRect(); return e === document.body || (s.outlineStyle !== "none" && r.width > 0) || e.id === "main" ? "" : e.outerHTML.slice(0, 200) })()`); hidden != "" {
			t.Errorf("the focus is not seen: %s", hidden)
		}
	}
}

// Nothing serious is found by axe, at two widths, light and dark.
func testAccessible(t *testing.T, b context.Context, s *server) {
	axe, err := os.ReadFile(filepath.Join(npmtest.Install(t, "testdata/npm"), "axe-core", "axe.min.js"))
	if err != nil {
		t.Fatal(err)
	}
	id := s.run(t, "release", "Write the notes")
	p := newTab(t, b, s.url)
	p.open("#/runs/" + id)
	p.until(`document.querySelector('[data-node="review"].waiting') !== null`)
	chat, _ := s.post(t, "/v1/sessions", `{"agent": "guide"}`)["id"].(string)
	s.post(t, "/v1/sessions/"+chat+"/completions", `{"prompt": "files"}`)
	for _, view := range []string{"#/runs", "#/runs/" + id, "#/runs/" + id + "?row=node-2", "#/questions", "#/chat/" + chat, "#/agents/release", "dialog"} {
		for _, size := range [][2]int64{{1440, 900}, {390, 844}} {
			for _, theme := range []string{"light", "dark"} {
				t.Run(fmt.Sprintf("%s_%d_%s", strings.Trim(strings.ReplaceAll(url.PathEscape(view), "/", "_"), "%_23"), size[0], theme), func(t *testing.T) {
					p.t = t
					defer func() { p.t = nil }()
					p.size(size[0], size[1], theme)
					if view == "dialog" {
						p.open("#/runs")
						p.keys("?")
						p.until(`document.querySelector("dialog") !== null`)
					} else {
						p.open(view)
					}
					p.until(`document.querySelectorAll("main *").length > 20`)
					p.run(`new Promise((r) => setTimeout(r, 400))`)
					if wide := eval[int](p, `document.documentElement.scrollWidth - innerWidth`); wide > 0 {
						t.Errorf("the page is %d pixels wider than the window", wide)
					}
					p.run(string(axe) + "\n;undefined")
					findings := eval[[]string](p, `axe.run(document, { resultTypes: ["violations"] }).then((r) => r.violations.filter((v) => ["serious", "critical"].includes(v.impact)).map((v) => v.id + ": " + v.nodes.map((n) => n.html.slice(0, 160) + " " + n.failureSummary.slice(0, 300)).slice(0, 4).join("\n   ")))`)
					for _, f := range findings {
						t.Error(f)
					}
				})
			}
		}
	}
}

// A server with keys shows nothing before a key is given.
func TestSignIn(t *testing.T) {
	b := browser(t)
	s := prepare(t, "")
	key := strings.TrimSpace(s.loki(t, "--api-key", "ada", "--scopes", "*"))
	s.serve(t)
	p := newTab(t, b, s.url)
	p.allow("401")
	p.open("#/agents/release")
	p.sees("Sign in")
	p.write("#key", "loki_wrong\r")
	p.sees("The server does not know this key.")
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
