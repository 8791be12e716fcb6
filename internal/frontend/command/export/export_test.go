package export_test

import (
	"context"
	"encoding/base64"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	cdpruntime "github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"loki/internal/base/fault"
	"loki/internal/conversation/session"
	"loki/internal/conversation/session/memstore"
	"loki/internal/frontend/command/export"
	"loki/internal/llm/chat"
)

// talk returns a conversation in which everything that a stranger may write is text.
func talk(text string) export.Talk {
	call := chat.Message{Role: chat.Assistant, Parts: []chat.Part{{Type: chat.ReasoningPart, Text: text}, {Type: chat.TextPart, Text: text}}, ToolCalls: []chat.ToolCall{{ID: "1", Name: text, Arguments: text}}}
	result := chat.Text(chat.ToolRole, text)
	result.ToolCallID, result.ToolName = "1", text
	picture := chat.Message{Role: chat.User, Parts: []chat.Part{{Type: chat.TextPart, Text: text}, {Type: chat.ImagePart, URL: text}, {Type: chat.ImagePart, URL: "data:image/svg+xml;base64," + base64.StdEncoding.EncodeToString([]byte(text))}}}
	return export.Talk{
		Title: text, Facts: [][2]string{{"model", text}}, Usage: chat.Usage{InputTokens: 7, OutputTokens: 3},
		Entries: []export.Entry{{Message: picture}, {Message: call, By: text}, {Message: result}, {Message: chat.Text(chat.Assistant, text)}},
	}
}

// document returns a talk in a format.
func document(t testing.TB, of export.Talk, format string) string {
	t.Helper()
	doc, err := export.Document(of, export.Options{Format: format, Reasoning: true})
	if err != nil {
		t.Fatal(err)
	}
	return string(doc)
}

// hostile are texts that would do something if they were more than text. HOST is a server that must not be asked.
func hostile() map[string]string {
	svg := `<svg xmlns="http://www.w3.org/2000/svg" onload="pwned=1"><script>pwned=1</script></svg>`
	return map[string]string{
		"script":           `<script>pwned=1</script><script src="HOST/a.js"></script>`,
		"script_in_words":  "see <script>pwned=1</script> here, and <ScRiPt >pwned=1</sCrIpT >",
		"closing_tags":     `</div></pre></details></section></style></title></body></html><script>pwned=1</script>`,
		"handlers":         `<img src=x onerror="pwned=1"><body onload=pwned=1><input autofocus onfocus=pwned=1>`,
		"picture":          `![x](HOST/a.png) <img src="HOST/b.png"> ![x](data:image/svg+xml,<svg/onload=pwned=1>)`,
		"javascript_link":  "[x](javascript:pwned=1) [y](JaVaScRiPt:pwned=1) <javascript:pwned=1> [z](<java\tscript:pwned=1>)",
		"entity_link":      "[x](&#106;avascript:pwned=1) [y](java&Tab;script:pwned=1) [z](javascript&colon;pwned=1)",
		"reference_link":   "[x][1]\n\n[1]: javascript:pwned=1 'title\" onmouseover=\"pwned=1'",
		"data_link":        `[x](data:text/html,<script>pwned=1</script>) [y](vbscript:pwned) [z](file:///etc/passwd)`,
		"title_breaks_out": `[x](http://a.example "\" onmouseover=\"pwned=1") ![x](http://a.example/"onerror="pwned=1)`,
		"svg":              svg,
		"svg_block":        "\n\n" + svg + "\n\n",
		"math":             `<math><mi xlink:href="javascript:pwned=1">x</mi><mtext><style><img src=x onerror=pwned=1></style></mtext></math>`,
		"iframe":           `<iframe src="HOST/f.html"></iframe><iframe srcdoc="<script>parent.pwned=1</script>"></iframe>`,
		"object":           `<object data="HOST/o.swf"></object><embed src="HOST/e.swf"><applet code=x></applet>`,
		"meta_refresh":     `<meta http-equiv="refresh" content="0; url=HOST/m.html">`,
		"base":             `<base href="HOST/"><link rel="stylesheet" href="HOST/l.css"><link rel="prefetch" href="HOST/p">`,
		"form":             `<form action="HOST/form"><input type=submit autofocus><button formaction="javascript:pwned=1">x</button></form>`,
		"css":              `<style>@import "HOST/c.css"; body { background: url(HOST/bg.png) }</style>`,
		"css_attribute":    `<p style="background: url(HOST/bg.png); position: fixed">x</p>`,
		"css_in_style":     "</style><style>body { background: url(HOST/x) }",
		"broken_utf8":      "\xff\xfe<script>pwned=1</script>\xc3(\xe2\x82",
		"utf7":             "+ADw-script+AD4-pwned=1+ADw-/script+AD4-",
		"bidi":             "safe \u202e<script>pwned=1</script>\u2066 txt.exe &#x202e;evil",
		"control":          "\x00\x1b]0;title\x07<scr\x00ipt>pwned=1</script> &#27;[31m",
		"comment":          `<!--><script>pwned=1</script--> <!-- --!><script>pwned=1</script> <![CDATA[><script>pwned=1</script>]]>`,
		"code_info":        "```\"><script>pwned=1</script>\nx\n```\n```html\n<script>pwned=1</script>\n```",
		"table":            "| a | <img src=x onerror=pwned=1> |\n|:-:|---|\n| `</td><script>pwned=1</script>` | [x](javascript:pwned=1) |",
		"template":         "{{constructor.constructor('pwned=1')()}} ${pwned=1} <%= pwned=1 %>",
		"nested":           strings.Repeat("> ", 3000) + "<script>pwned=1</script>" + strings.Repeat("[", 3000) + strings.Repeat("*a", 3000),
		"huge":             strings.Repeat("<script>pwned=1</script> [x](javascript:pwned=1)\n", 6_000),
	}
}

// browser starts Chromium. Without it the test is skipped, but fails where the variable CI is set.
func browser(t *testing.T) context.Context {
	t.Helper()
	if testing.Short() || runtime.GOOS != "linux" {
		t.Skip("starts a browser, that of Debian")
	}
	names := []string{"chromium", "chromium-browser", "google-chrome"}
	i := slices.IndexFunc(names, func(name string) bool { _, err := exec.LookPath(name); return err == nil })
	switch {
	case i < 0 && os.Getenv("CI") != "":
		t.Fatalf("none of %q is installed", names)
	case i < 0:
		t.Skipf("none of %q is installed", names)
	}
	options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]), chromedp.ExecPath(names[i]), chromedp.NoSandbox, chromedp.UserDataDir(t.TempDir()), chromedp.WSURLReadTimeout(time.Minute))
	ctx, cancel := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	if err := chromedp.Do(ctx); err != nil {
		t.Fatal(err)
	}
	return ctx
}

// evaluate returns the value of an expression.
func evaluate[T any](t *testing.T, ctx context.Context, expression string) T {
	t.Helper()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// look opens a file and returns the addresses that were asked for besides it, whether a script has run, and how many elements
// are there that a document does not have.
func look(t *testing.T, ctx context.Context, file string) (asked []string, ran bool, strange int) {
	t.Helper()
	ctx, cancel := chromedp.NewContext(ctx)
	defer cancel()
	ctx, stop := context.WithTimeout(ctx, 2*time.Minute)
	defer stop()
	if err := chromedp.Do(ctx); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	err := chromedp.Listen(ctx, func(ev any) {
		mu.Lock()
		defer mu.Unlock()
		switch ev := ev.(type) {
		case *network.EventRequestWillBeSent:
			if url := ev.Request.URL; !strings.HasPrefix(url, "file://") && !strings.HasPrefix(url, "data:image/png;") {
				asked = append(asked, url)
			}
		case *page.EventJavascriptDialogOpening, *cdpruntime.EventExceptionThrown:
			ran = true
		}
	})
	if err == nil {
		_, err = chromedp.Call(ctx, network.Enable, network.EnableParams{})
	}
	if err == nil {
		err = chromedp.Do(ctx, chromedp.Navigate("file://"+file))
	}
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	// What a reader can do without leaving the page is done: everything is unfolded and hovered.
	const count = `document.querySelectorAll('details').forEach((d) => { d.open = true });
for (const e of document.querySelectorAll('body *')) for (const type of ['mouseover', 'focus', 'error', 'load']) if (e['on' + type]) window.pwned = 1;
document.querySelectorAll('script, iframe, object, embed, form, base, link, svg, math, [style], img:not([src^="data:image/png;"]), body style, body meta, a:not([href^="http"]):not([href^="mailto:"])').length`
	strange = evaluate[int](t, ctx, count)
	pwned := evaluate[bool](t, ctx, `typeof window.pwned !== 'undefined'`)
	mu.Lock()
	defer mu.Unlock()
	return asked, ran || pwned, strange
}

// TestHostileTalksAreInert opens conversations that try to run or to load something.
func TestHostileTalksAreInert(t *testing.T) {
	ctx := browser(t)
	var mu sync.Mutex
	var requests []string
	host := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		requests = append(requests, r.URL.Path)
	}))
	defer host.Close()
	dir := t.TempDir()
	file := filepath.Join(dir, "talk.html")
	open := func(doc string) (asked []string, ran bool, strange int) {
		if err := os.WriteFile(file, []byte(doc), 0o600); err != nil {
			t.Fatal(err)
		}
		return look(t, ctx, file)
	}
	// The test sees what a page can do that is not inert.
	if asked, ran, strange := open(`<script>pwned=1</script><img src="` + host.URL + `/a.png">`); len(asked) == 0 || !ran || strange != 2 {
		t.Fatalf("a page with a script and a picture: asked %q, a script ran: %v, strange elements: %d", asked, ran, strange)
	}
	mu.Lock()
	requests = nil
	mu.Unlock()
	for name, text := range hostile() {
		begun := time.Now()
		doc := document(t, talk(strings.ReplaceAll(text, "HOST", host.URL)), export.HTML)
		if took := time.Since(begun); took > 20*time.Second {
			t.Errorf("%s: the document took %v", name, took)
		}
		if asked, ran, strange := open(doc); len(asked) > 0 || ran || strange > 0 {
			t.Errorf("%s: asked %q, a script ran: %v, strange elements: %d", name, asked, ran, strange)
		}
		// The policy holds, but nothing of it is needed: the same without it is inert, too.
		bare := strings.Replace(doc, "Content-Security-Policy", "X-None", 1)
		if asked, ran, strange := open(bare); bare == doc || len(asked) > 0 || ran || strange > 0 {
			t.Errorf("%s without the policy: asked %q, a script ran: %v, strange elements: %d", name, asked, ran, strange)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if len(requests) > 0 {
		t.Errorf("requests were made: %q", requests)
	}
	// The policy alone holds back what is not inert, and lets the style through.
	doc := document(t, talk("hello"), export.HTML)
	if asked, ran, _ := open(strings.Replace(doc, "<dl>", `<script>pwned=1</script><dl>`, 1)); len(asked) > 0 || ran {
		t.Error("the policy lets a script run")
	}
	tab, cancel := chromedp.NewContext(ctx)
	defer cancel()
	if err := chromedp.Do(tab, chromedp.Navigate("file://"+file)); err != nil {
		t.Fatal(err)
	}
	if width := evaluate[string](t, tab, `getComputedStyle(document.body).maxWidth`); width != "820px" {
		t.Errorf("the style is not in force: the width is %q", width)
	}
}

// TestNothingControlsWhatIsShown: no format has characters that reorder text or that a terminal obeys.
func TestNothingControlsWhatIsShown(t *testing.T) {
	t.Parallel()
	for name, text := range hostile() {
		for _, format := range export.Formats() {
			if doc := document(t, talk(text), format); strings.ContainsAny(doc, "\x00\x1b\x07\u202e\u2066") {
				t.Errorf("%s as %s has characters that control what is shown", name, format)
			}
		}
	}
}

var picture = "data:image/png;base64," + base64.StdEncoding.EncodeToString([]byte("a picture"))

func TestDocument(t *testing.T) {
	t.Parallel()
	failed := chat.Text(chat.ToolRole, "no such file")
	failed.ToolCallID, failed.ToolName, failed.Failed = "2", "fs_cat", true
	all := export.Talk{Title: "Boats", Facts: [][2]string{{"model", "openai:m"}, {"role", ""}}, Usage: chat.Usage{InputTokens: 1200, OutputTokens: 34}, Entries: []export.Entry{
		{Message: chat.Text(chat.System, "be kind")},
		{Message: chat.Message{Role: chat.User, Parts: []chat.Part{{Type: chat.TextPart, Text: "Read *it*\nnow"}, {Type: chat.ImagePart, URL: picture}}}},
		{Message: chat.Message{Role: chat.Assistant, Parts: []chat.Part{{Type: chat.ReasoningPart, Text: "hm"}, {Type: chat.TextPart, Text: "I look."}}, ToolCalls: []chat.ToolCall{{ID: "2", Name: "fs_cat", Arguments: `{"path": "a.txt"}`}}}},
		{Message: failed},
		{Message: chat.Text(chat.Assistant, "**Gone**, see [it](https://a.example/x).\n\n```go\nfunc main() {}\n```\n")},
	}}
	for _, tt := range []struct {
		format    string
		reasoning bool
		has, not  []string
	}{
		{format: export.Markdown, has: []string{"# Boats\n\n* model: openai:m\n* used: 1200 tokens in, 34 tokens out\n", "## User\n\nRead *it*\nnow\n\n![picture](" + picture + ")", "<details><summary>failed: fs_cat</summary>\n\n```\nno such file\n```", "**Gone**"}, not: []string{"be kind", "hm", "role"}},
		{format: export.Markdown, reasoning: true, has: []string{"<summary>Reasoning</summary>\n\n```\nhm\n```"}},
		{format: export.HTML, has: []string{"Read *it*\nnow", `src="` + picture + `"`, "<strong>Gone</strong>", `<a rel="noreferrer noopener" href="https://a.example/x">it</a>`, `<span class="k">func</span>`, "<summary>fs_cat {&#34;path&#34;: &#34;a.txt&#34;}</summary>"}, not: []string{"be kind", "hm<"}},
		{format: export.HTML, reasoning: true, has: []string{"<summary>Reasoning</summary><pre>hm</pre>"}},
	} {
		doc, err := export.Document(all, export.Options{Format: tt.format, Reasoning: tt.reasoning})
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range tt.has {
			if !strings.Contains(string(doc), want) {
				t.Errorf("%s lacks %q:\n%s", tt.format, want, doc)
			}
		}
		for _, unwanted := range tt.not {
			if strings.Contains(string(doc), unwanted) {
				t.Errorf("%s has %q", tt.format, unwanted)
			}
		}
	}
}

// TestTitleOfAnUnnamedSession: without a name and a title it is called by its first question.
func TestTitleOfAnUnnamedSession(t *testing.T) {
	store := memstore.New(session.Options{})
	for name, want := range map[string]string{"": "how deep is the lake?", "lake": "lake"} {
		s := store.Temp("", session.Settings{})
		if name != "" {
			var err error
			if s, err = store.OpenOrCreate(t.Context(), "", session.Alias(name), func() (session.Settings, error) { return session.Settings{}, nil }); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Append(t.Context(), session.Turn{User: chat.Text(chat.User, "how deep\nis the lake?"), Reply: []chat.Message{chat.Text(chat.Assistant, "40 m")}}); err != nil {
			t.Fatal(err)
		}
		if got := export.Session(s).Title; got != want {
			t.Errorf("the title is %q, want %q", got, want)
		}
	}
}

// TestPlans: a plan is shown as the user reads it, with what they decided.
func TestPlans(t *testing.T) {
	const arguments = `{"title": "Mend it", "summary": "It leaks.", "steps": [{"text": "Tar", "files": ["boat.txt"]}]}`
	for name, tt := range map[string]struct{ arguments, answer, want, not string }{
		"accepted": {arguments, `{"status": "accepted", "mode": "ask"}`, "### Plan: Mend it\n\nIt leaks.\n\n1. Tar\n   - file: `boat.txt`\n\nThe user accepted this plan.", "plan__propose"},
		"changed":  {arguments, `{"status": "accepted", "plan": {"title": "Mend it", "summary": "", "steps": [{"text": "Use oak"}]}}`, "1. Use oak", "Tar"},
		"refused":  {arguments, `{"status": "refused", "reason": "Use oak."}`, "did not accept this plan. Use oak.", "plan__propose"},
		"open":     {arguments, "", "### Plan: Mend it", "The user"},
		"no_plan":  {`{"title": ""}`, "denied", "plan__propose", "### Plan"},
	} {
		t.Run(name, func(t *testing.T) {
			call := chat.Message{Role: chat.Assistant, ToolCalls: []chat.ToolCall{{ID: "1", Name: "plan__propose", Arguments: tt.arguments}}}
			talk := export.Talk{Title: "t", Entries: []export.Entry{{Message: chat.Text(chat.User, "mend it")}, {Message: call}}}
			if tt.answer != "" {
				m := chat.Text(chat.ToolRole, tt.answer)
				m.ToolCallID, m.ToolName = "1", "plan__propose"
				talk.Entries = append(talk.Entries, export.Entry{Message: m})
			}
			doc, err := export.Document(talk, export.Options{})
			if err != nil || !strings.Contains(string(doc), tt.want) || strings.Contains(string(doc), tt.not) {
				t.Errorf("%v\n%s", err, doc)
			}
			page, err := export.Document(talk, export.Options{Format: export.HTML})
			if err != nil || name != "no_plan" && !strings.Contains(string(page), "Plan: Mend it</h3>") {
				t.Errorf("%v\n%s", err, page)
			}
		})
	}
}

func TestPictures(t *testing.T) {
	t.Parallel()
	of := func(bytes int) export.Talk {
		url := "data:image/png;base64," + base64.StdEncoding.EncodeToString(make([]byte, bytes))
		return export.Talk{Entries: []export.Entry{{Message: chat.Message{Role: chat.User, Parts: []chat.Part{{Type: chat.ImagePart, URL: url}}}}}}
	}
	if doc := document(t, of(5<<20), export.HTML); !strings.Contains(doc, "<img") {
		t.Error("a picture of 5 MiB is not there")
	}
	if doc := document(t, of(5<<20+1), export.HTML); strings.Contains(doc, "<img") || !strings.Contains(doc, "(a picture of 5.0 MiB is left out)") || len(doc) > 10_000 {
		t.Error("a picture of more than 5 MiB is there")
	}
}

// TestSecretsAreMasked: known ones, and what looks like one.
func TestSecretsAreMasked(t *testing.T) {
	t.Parallel()
	secrets := []string{
		"hunter2hunter2", "sk-proj-abcdefghijklmnopqrstuvwx", "ghp_abcdefghijklmnopqrstuvwxyz0123456789", "AKIAIOSFODNN7EXAMPLE", "glpat-abcdefghij0123456789", "xoxb-123456789012-abcdef",
		"AIzaSyA1234567890abcdefghijklmnopqrstuv", "sk_live_abcdefghijklmnop1234", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NSJ9.abcdefghijklmnop", "MIIEvQIBADANBg", "p4ssw0rd",
	}
	text := strings.Join(secrets[:9], " ") + "\n-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBg\n-----END PRIVATE KEY-----\npostgres://me:p4ssw0rd@db/x"
	for _, format := range export.Formats() {
		doc, err := export.Document(talk(text), export.Options{Format: format, Reasoning: true, Hide: func(s string) string { return strings.ReplaceAll(s, "hunter2hunter2", "***K***") }})
		if err != nil {
			t.Fatal(err)
		}
		for _, secret := range secrets {
			if strings.Contains(string(doc), secret) {
				t.Errorf("%s shows %s", format, secret)
			}
		}
		if !strings.Contains(string(doc), "***K***") || !strings.Contains(string(doc), "***PRIVATE_KEY***") {
			t.Errorf("%s does not say where secrets were", format)
		}
	}
}

func TestNothingSaid(t *testing.T) {
	t.Parallel()
	if _, err := export.Document(export.Talk{Title: "x"}, export.Options{}); fault.CodeOf(err) != fault.Usage {
		t.Errorf("got %v", err)
	}
}

func TestWriteKeepsWhatIsThere(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "a.md")
	if err := export.Write(file, []byte("one")); err != nil {
		t.Fatal(err)
	}
	err := export.Write(file, []byte("two"))
	if got, _ := os.ReadFile(file); string(got) != "one" || fault.CodeOf(err) != fault.Usage {
		t.Errorf("the file has %q, the error is %v", got, errors.Unwrap(err))
	}
}
