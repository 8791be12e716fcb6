package highlight_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/alecthomas/chroma/v2"
	"github.com/alecthomas/chroma/v2/lexers"

	"loki/internal/base/text/sample"
	"loki/internal/frontend/render/highlight"
)

// token is a piece of text with its kind.
type token struct{ kind, text string }

// ours lexes text at once.
func ours(l *highlight.Lexer, text string) []token {
	var st highlight.State
	spans, _ := l.Lex(nil, []byte(text), len(text), &st)
	return tokens(spans, text)
}

func tokens(spans []highlight.Span, text string) []token {
	var out []token
	at := 0
	for _, s := range spans {
		out = add(out, s.Kind.String(), text[at:s.End])
		at = s.End
	}
	return out
}

func add(out []token, kind, text string) []token {
	if text == "" {
		return out
	}
	if n := len(out); n > 0 && out[n-1].kind == kind {
		out[n-1].text += text
		return out
	}
	return append(out, token{kind, text})
}

func theirs(t *testing.T, name, text string) []token {
	t.Helper()
	l := lexers.Get(name)
	if l == nil {
		t.Fatalf("chroma does not know %s", name)
	}
	var out []token
	it, err := l.Tokenise(nil, text)
	if err != nil {
		t.Fatal(err)
	}
	for tok := it(); tok != chroma.EOF; tok = it() {
		out = add(out, tok.Type.String(), tok.Value)
	}
	return out
}

func show(list []token) string {
	var b strings.Builder
	for _, t := range list {
		b.WriteString(t.kind + " " + strings.ReplaceAll(t.text, "\n", `\n`) + "\n")
	}
	return b.String()
}

// examples returns the directory of chroma's examples.
func examples(t *testing.T) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/alecthomas/chroma/v2").Output()
	if err != nil {
		t.Skip("the go command does not find the chroma module:", err)
	}
	return filepath.Join(strings.TrimSpace(string(out)), "lexers", "testdata")
}

// different are languages whose tokens differ from chroma's, and why.
var different = map[string]string{
	"caddyfile": "chroma lexes HTML in here documents by Go code",
	"erb":       "chroma lexes the HTML around by Go code",
	"markdown":  "chroma lexes front matter by Go code",
	"org":       "chroma knows the functions of Emacs Lisp by Go code",
}

// TestLikeChroma compares the engine with chroma's own on chroma's examples.
func TestLikeChroma(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(examples(t), "*.actual"))
	if err != nil || len(files) < 50 {
		t.Fatalf("%d examples: %v", len(files), err)
	}
	compared, step := 0, sample.Step(4)
	for i, file := range files {
		if i%step != 0 {
			continue
		}
		name := strings.TrimSuffix(filepath.Base(file), ".actual")
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		l := highlight.Find(name)
		if l == nil || lexers.Get(name) == nil || bytes.IndexByte(data, '\r') >= 0 || len(data) > 64<<10 {
			continue
		}
		text := strings.TrimRight(string(data), "\n") + "\n"
		got, want := show(ours(l, text)), show(theirs(t, name, text))
		// Both give a pattern up that takes too long by the clock, as it may on a busy machine.
		for range 4 {
			if got == want || different[name] != "" {
				break
			}
			got, want = show(ours(l, text)), show(theirs(t, name, text))
		}
		compared++
		if (got == want) == (different[name] == "") {
			continue
		}
		if got == want {
			t.Errorf("%s is the same again", name)
			continue
		}
		gotLines, wantLines := strings.Split(got, "\n"), strings.Split(want, "\n")
		for i := range gotLines {
			if i >= len(wantLines) || gotLines[i] != wantLines[i] {
				t.Errorf("%s: token %d is %q, chroma's %q", name, i, gotLines[i], wantLines[min(i, len(wantLines)-1)])
				break
			}
		}
	}
	if compared < 100/step {
		t.Errorf("only %d examples were compared", compared)
	}
}

func TestFind(t *testing.T) {
	for _, tt := range []struct{ name, want string }{
		{"go", "Go"},
		{"Golang", "Go"},
		{"csharp", "C#"},
		{"c++", "C++"},
		{"cpp", "C++"},
		{"php", "PHP"},
		{"py", "Python"},
		{".rs", "Rust"},
		{"main.ts", "TypeScript"},
		{"dir/x.yml", "YAML"},
		{"sh", "Bash"},
		{"dockerfile", "Docker"},
		{"JSON", "JSON"},
		{"markdown", "markdown"},
		{"", ""},
		{"text", ""},
		{"nosuchlanguage", ""},
		{"../go", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := nameOf(highlight.Find(tt.name)); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestDetect(t *testing.T) {
	for line, want := range map[string]string{
		"#!/bin/sh":                    "Bash",
		"#!/usr/bin/env python3":       "Python",
		"#!/usr/bin/env -S node --x":   "JavaScript",
		"#!/usr/bin/ruby2.7 -w":        "Ruby",
		"#!":                           "",
		"<?php":                        "PHP",
		"<?xml version=\"1.0\"?>":      "XML",
		"<!DOCTYPE html>":              "HTML",
		"diff --git a/x b/x":           "Diff",
		"Dear reader,":                 "",
		"":                             "",
		"#!/usr/bin/env FOO=1 nothing": "",
	} {
		if got := nameOf(highlight.Detect(line)); got != want {
			t.Errorf("%q: got %q, want %q", line, got, want)
		}
	}
}

func nameOf(l *highlight.Lexer) string {
	if l == nil {
		return ""
	}
	return l.Name()
}

// TestGoesOn lexes texts in parts, each with some lines of what follows in sight, and
// expects what lexing them at once gives.
func TestGoesOn(t *testing.T) {
	for name, text := range map[string]string{
		"go":         "package x\n\n/* over\nlines */\nvar s = `raw\nstring`\nfunc f() {\n\treturn // 日本\n}\n",
		"python":     "def f():\n    \"\"\"Doc\n    string.\"\"\"\n    return f\"{x!r} 日本\"\n\nclass A(B):\n    pass\n",
		"html":       "<html>\n<script>\nvar x = 1;\n// y\n</script>\n<style>\na { b: c }\n</style>\n<p class=\"x\">é</p>\n</html>\n",
		"javascript": "const a = `x ${b +\n c} y`;\n/* z\n*/\nfunction f() {\n  return /re/g;\n}\n",
		"yaml":       "a: |\n  text\n  more\nb:\n  - c: 1\n  - \"d\"\n",
		"bash":       "cat <<EOF\na $b\nEOF\nif [ -f x ]; then\n  echo \"$(ls)\"\nfi\n",
	} {
		l := highlight.Find(name)
		if l == nil {
			t.Fatalf("%s is unknown", name)
		}
		want := show(ours(l, text))
		lines := strings.SplitAfter(strings.TrimSuffix(text, "\n"), "\n")
		for ahead := 4; ahead < 6; ahead++ {
			var st highlight.State
			var got []token
			from, printed := 0, 0 // offsets in text
			for i := range lines {
				limit := printed + len(lines[i])
				if i == len(lines)-1 {
					limit = len(text)
				}
				seen := min(len(text), limit+len(strings.Join(lines[min(i+1, len(lines)):min(i+1+ahead, len(lines))], "")))
				spans, resume := l.Lex(nil, []byte(text[from:seen]), limit-from, &st)
				at := 0
				for _, s := range spans {
					got = add(got, s.Kind.String(), text[min(from+s.End, max(printed, from+at)):from+s.End])
					at = s.End
				}
				from, printed = from+resume, limit
			}
			if show(got) != want {
				t.Errorf("%s with %d lines in sight: got\n%s\nwant\n%s", name, ahead, show(got), want)
			}
		}
	}
}

// TestLexersAreSound loads every lexer and tries every rule.
func TestLexersAreSound(t *testing.T) {
	index, err := os.ReadFile("lexers/index.txt")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("lexers/*.xml")
	if err != nil {
		t.Fatal(err)
	}
	listed := 0
	for line := range strings.Lines(string(index)) {
		if line[0] == '#' {
			continue
		}
		listed++
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		name, _, _ := strings.Cut(fields[1], ",")
		if _, err := os.Stat(filepath.Join("lexers", fields[0]+".xml")); err != nil {
			t.Error(err)
		}
		if listed%sample.Step(4) != 0 {
			continue
		}
		l := highlight.Find(name)
		if l == nil {
			t.Errorf("%s cannot be read", fields[0])
			continue
		}
		text := "if (x == \"a\") { return 1; } # c\n"
		var b strings.Builder
		for _, tok := range ours(l, text) {
			b.WriteString(tok.text)
		}
		if b.String() != text {
			t.Errorf("%s: text was lost: %q", fields[0], b.String())
		}
	}
	if listed != len(files) || listed < 200 {
		t.Errorf("%d lexers are listed, and there are %d files", listed, len(files))
	}
}

func TestLicense(t *testing.T) {
	text, err := os.ReadFile("lexers/COPYING")
	if err != nil || !strings.Contains(string(text), "Alec Thomas") || !strings.Contains(string(text), "Permission is hereby granted") {
		t.Errorf("the license of the lexers is missing: %v", err)
	}
}

// FuzzLex checks that spans cover the text whatever it is, and end.
func FuzzLex(f *testing.F) {
	for _, name := range []string{"go", "python", "html", "bash", "markdown", "yaml", "javascript"} {
		f.Add(name, "a \"b\" `c` /* d */ # e\n<f g='h'>\n```i\n", 9)
	}
	f.Add("rust", "fn 日本() {}\xff\n\n", 4)
	f.Fuzz(func(t *testing.T, name, text string, limit int) {
		l := highlight.Find(name)
		if l == nil || len(text) > 300 {
			return
		}
		text += "\n"
		limit = max(0, limit) % (len(text) + 1)
		if i := strings.IndexByte(text[limit:], '\n'); i >= 0 {
			limit += i + 1
		}
		var st highlight.State
		spans, resume := l.Lex(nil, []byte(text), limit, &st)
		at := 0
		for _, s := range spans {
			if s.End <= at {
				t.Fatalf("a span ends at %d, the one before at %d", s.End, at)
			}
			at = s.End
		}
		if at != limit || resume > limit {
			t.Fatalf("spans end at %d, the text goes on at %d; the limit is %d", at, resume, limit)
		}
		l.Lex(nil, []byte(text[resume:]), len(text)-resume, &st)
	})
}
