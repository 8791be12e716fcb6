package assets_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"loki/internal/base/value"
)

// state returns the state that compose.sh sees after the map.
func state(root string, files []file, summaries []string) value.Value {
	var list, results []value.Value
	for _, f := range files {
		members := []any{"path", f.path, "text", f.text}
		if f.note != "" {
			members = append(members, "note", f.note)
		}
		list = append(list, object(members...))
	}
	for _, s := range summaries {
		results = append(results, value.Of(s))
	}
	return object(
		"a", value.ListOf(object("summaries", value.ListOf(value.Of("decoy")).Value())).Value(),
		"files", value.ListOf(list...).Value(),
		"initial_prompt", "\\\"",
		"root", root,
		"summaries", value.ListOf(results...).Value(),
	)
}

// code is s as a Markdown code span.
func code(s string) string {
	s = oneLine(s)
	fence := "`"
	for strings.Contains(s, fence) {
		fence += "`"
	}
	if fence == "`" {
		return "`" + s + "`"
	}
	return fence + " " + s + " " + fence
}

func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x20 || r == 0x7f {
			return ' '
		}
		return r
	}, s)
}

func TestComposeWritesASectionForEachFile(t *testing.T) {
	files := []file{
		{path: "a.md", text: "first"},
		{path: "sub dir/we`ird``\n\"name\"\\é.md", text: "second", note: "Only the first 6 bytes were read."},
		{path: "c.md", text: "third"},
		{path: "d.md", text: "fourth"},
	}
	summaries := []string{
		"Plain.",
		"A \"quoted\" \\ summary\nin two lines: \u0001 \u2028 😀 \\",
		"LLM node failed: status 500: \"overloaded\"\\",
		"",
	}
	const want = "## `a.md`\n\nPlain.\n\n" +
		"## ``` sub dir/we`ird`` \"name\"\\é.md ```\n\nA \"quoted\" \\ summary\nin two lines: \u0001 \u2028 😀 \\\n\n" +
		"*Only the first 6 bytes were read.*\n\n" +
		"## `c.md`\n\n*This file could not be summarized:* status 500: \"overloaded\"\\\n\n" +
		"## `d.md`\n\n\n\n" +
		"## Sources\n\n" +
		"1. [`a.md`](a.md)\n" +
		"2. [``` sub dir/we`ird`` \"name\"\\é.md ```](sub%20dir/we%60ird%60%60%0A%22name%22%5C%C3%A9.md)\n" +
		"3. [`c.md`](c.md)\n" +
		"4. [`d.md`](d.md)\n"
	const wantOverview = "## a.md\n\nPlain.\n\n" +
		"## sub dir/we`ird`` \"name\"\\é.md\n\nA \"quoted\" \\ summary\nin two lines: \u0001 \u2028 😀 \\\n\n" +
		"## d.md\n\n\n\n"
	for _, tools := range toolsets(t) {
		t.Run(tools.name, func(t *testing.T) {
			got := tools.run(t, t.TempDir(), "compose.sh", state("docs", files, summaries)).object
			if s := text(t, got, "sections"); s != want {
				t.Errorf("sections:\n got %q\nwant %q", s, want)
			}
			if s := text(t, got, "overview_text"); s != wantOverview {
				t.Errorf("overview_text:\n got %q\nwant %q", s, wantOverview)
			}
			if s := text(t, got, "title"); s != "Digest of `docs`" {
				t.Errorf("title: %q", s)
			}
			if s := text(t, got, "overview_request"); !strings.Contains(s, "summaries") || !strings.Contains(s, "in 5 bullets") {
				t.Errorf("overview_request: %q", s)
			}
		})
	}
}

// One file needs no summary of summaries: its overview is made of the text itself.
func TestComposeOfOneFile(t *testing.T) {
	const content = "The \"whole\" text,\nwith all \\ there is."
	got := toolsets(t)[0].run(t, t.TempDir(), "compose.sh", state("a.md", []file{{path: "a.md", text: content}}, []string{"Short."})).object
	if s := text(t, got, "overview_text"); s != content {
		t.Errorf("overview_text: %q", s)
	}
	if s := text(t, got, "overview_request"); s != "Summarize the text in 5 bullets." {
		t.Errorf("overview_request: %q", s)
	}
}

func TestComposeNamesTheCurrentDirectory(t *testing.T) {
	dir := t.TempDir() + "/my `project`"
	write(t, dir, "x", nil)
	got := toolsets(t)[0].run(t, dir, "compose.sh", state(".", []file{{path: "a", text: "b"}}, []string{"s"})).object
	if s := text(t, got, "title"); s != "Digest of `` my `project` ``" {
		t.Errorf("title: %q", s)
	}
}

// Of many large files the texts do not matter, and are skipped quickly.
func TestComposeOfALargeState(t *testing.T) {
	var files []file
	var summaries []string
	for i := range 100 {
		files = append(files, file{path: fmt.Sprintf("f%03d", i), text: strings.Repeat(`"\" `, 5000)})
		summaries = append(summaries, fmt.Sprintf("Summary %d.", i))
	}
	got := toolsets(t)[0].run(t, t.TempDir(), "compose.sh", state("x", files, summaries)).object
	sections := text(t, got, "sections")
	for i := range files {
		if want := fmt.Sprintf("## `f%03d`\n\nSummary %d.\n\n", i, i); !strings.Contains(sections, want) {
			t.Errorf("sections lack %q", want)
		}
	}
}

func TestComposeFailsIfEveryFileFailed(t *testing.T) {
	files := []file{{path: "a", text: "x"}, {path: "b", text: "y"}}
	for _, tt := range []struct {
		name  string
		state value.Value
		want  string
	}{
		{"all_failed", state("x", files, []string{"LLM node failed: no \"key\"", "LLM node failed: later"}), `none of the files could be summarized; the first says: LLM node failed: no "key"`},
		{"no_summaries", state("x", files, nil), "no summary was made"},
		{"no_files", object("x", "y"), "no files"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := toolsets(t)[0].run(t, t.TempDir(), "compose.sh", tt.state)
			if got.exit != 1 || !strings.Contains(got.stderr, tt.want) {
				t.Errorf("exit %d, stderr %q, want 1 and %q", got.exit, got.stderr, tt.want)
			}
		})
	}
}

func FuzzCompose(f *testing.F) {
	f.Add("a.md", "text", "summary")
	f.Add("we`ird\n\\\"", "\\", "\\\\\"\\n\u0000\u001f")
	f.Add("", "", "{\"files\":[]}")
	tools := toolsets(f)[0]
	f.Fuzz(func(t *testing.T, path, content, summary string) {
		clean := func(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
		path, content, summary = clean(path), clean(content), clean(summary)
		if strings.HasPrefix(summary, "LLM node failed: ") {
			t.Skip("that is a failure")
		}
		got := tools.run(t, t.TempDir(), "compose.sh", state("root", []file{{path: path, text: content}}, []string{summary})).object
		// awk has no zero bytes, and no path has one.
		path = strings.ReplaceAll(path, "\x00", "\uFFFD")
		sections := text(t, got, "sections")
		target, ok := strings.CutPrefix(sections, "## "+code(path)+"\n\n"+summary+"\n\n## Sources\n\n1. ["+code(path)+"](")
		target, closed := strings.CutSuffix(target, ")\n")
		if !ok || !closed {
			t.Fatalf("sections: %q", sections)
		}
		if decoded, err := url.PathUnescape(target); err != nil || decoded != path || strings.ContainsAny(target, " ()<>\n") {
			t.Errorf("link %q is %q, want %q: %v", target, decoded, path, err)
		}
		if overview := text(t, got, "overview_text"); overview != content {
			t.Errorf("overview_text: %q, want %q", overview, content)
		}
	})
}
