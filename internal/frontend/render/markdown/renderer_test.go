package markdown_test

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"

	"loki/internal/frontend/render/highlight"
	"loki/internal/frontend/render/markdown"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// visible are styles that can be read in a golden file when ESC is replaced.
var visible = &markdown.Styles{
	Headings: [6]string{"h1", "h2", "h3", "h4", "h5", "h6"}, Mark: "mark", Quote: "quote", Bar: "bar", Bullet: "bullet", Done: "done", Code: "code",
	Block: "block", Link: "link", URL: "url", Rule: "rule", Head: "head", Emphasis: "em", Strong: "strong", Strike: "strike", HTML: "html", Math: "math",
	Token: func(k highlight.Kind) string { return k.String() },
}

// colored are styles as terminals know them.
var colored = &markdown.Styles{Mark: "2", Emphasis: "3", Code: "36", Rule: "2", Block: "33", Token: func(k highlight.Kind) string {
	return strconv.Itoa(30 + int(k)%8)
}}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s: got\n%s\nwant\n%s", path, got, want)
	}
}

// documents returns the documents of testdata by name.
func documents(t testing.TB) map[string]string {
	t.Helper()
	files, err := filepath.Glob("testdata/*.md")
	if err != nil || len(files) < 5 {
		t.Fatalf("%d documents: %v", len(files), err)
	}
	docs := make(map[string]string)
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		docs[strings.TrimSuffix(filepath.Base(file), ".md")] = string(data)
	}
	return docs
}

// TestGolden renders each document of testdata in windows of several widths, and once
// with its styles.
func TestGolden(t *testing.T) {
	for name, doc := range documents(t) {
		t.Run(name, func(t *testing.T) {
			for _, columns := range []int{40, 80, 120} {
				out := render(markdown.Options{Styles: &markdown.Styles{}, Wrap: markdown.Auto, WrapCode: true}, doc, columns)
				golden(t, name+"."+strconv.Itoa(columns)+".golden", out)
				for row := range strings.Lines(out) {
					if w := ansi.StringWidth(strings.TrimSuffix(row, "\n")); w > columns {
						t.Errorf("a row has %d of %d columns: %q", w, columns, row)
					}
				}
			}
			out := render(markdown.Options{Styles: visible, Hyperlinks: true}, doc, 80)
			golden(t, name+".styles.golden", strings.NewReplacer("\x1b[0m", "⟩", "\x1b[", "⟨", "\x1b]8;;", "⟦", "\x1b\\", "⟧").Replace(out))
		})
	}
}

// TestSource pins how the source is shown without styles.
func TestSource(t *testing.T) {
	prose := "To unzip a file in Rust, you can use the `zip` crate. Here is an example code that shows how to unzip a file:\n"
	code := "```rust\n    let file = fs::File::open(\"path/to/your/zip/file.zip\").expect(\"could not open the file!\");\n```\n"
	text := "\n\n# Title\n\n" + prose + "\n" + code + "\n*x* [a](b)\n\n"
	if got := render(markdown.Options{}, text, 80); got != text {
		t.Errorf("not wrapped: got %q, want %q", got, text)
	}
	first, second, _ := strings.Cut(prose, " that shows")
	wrapped := strings.Replace(text, prose, first+" that\nshows"+second, 1)
	if len(first+" that") > 80 {
		wrapped = strings.Replace(text, prose, first+"\nthat shows"+second, 1)
	}
	if got := render(markdown.Options{Wrap: 80}, text, 120); got != wrapped {
		t.Errorf("wrapped: got %q, want %q", got, wrapped)
	}
	want := strings.Replace(wrapped, "could not open", "could not\nopen", 1)
	if got := render(markdown.Options{Wrap: 80, WrapCode: true}, text, 120); got != want {
		t.Errorf("code wrapped: got %q, want %q", got, want)
	}
	if got, want := render(markdown.Options{Wrap: markdown.Auto}, "one two\n", 5), "one\ntwo\n"; got != want {
		t.Errorf("wrapped at the window: got %q, want %q", got, want)
	}
	if got, want := render(markdown.Options{Wrap: 80}, "one two\n", 5), "one\ntwo\n"; got != want {
		t.Errorf("window narrower than wrap: got %q, want %q", got, want)
	}
}

// TestInlines are the marks of text within a line.
func TestInlines(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"emphasis", "a *b* _c_ **d** __e__ ***f***", "a ⟨emmb⟩ ⟨emmc⟩ ⟨strongmd⟩ ⟨strongme⟩ ⟨em;strongmf⟩"},
		{"no_emphasis", "2 * 3 * 4, a_b_c, 5*6, *, **", "2 * 3 * 4, a_b_c, 5*6, *, **"},
		{"nested", "**a *b* c**", "⟨strongma ⟩⟨em;strongmb⟩⟨strongm c⟩"},
		{"within_word", "un*frigging*believable", "un⟨emmfrigging⟩believable"},
		{"three_rule", "*a**b**c*", "⟨emma⟩⟨em;strongmb⟩⟨emmc⟩"},
		{"ideographs", "中文**粗体。**中文", "中文⟨strongm粗体。⟩中文"},
		{"strike", "~~gone~~ ~5 to ~10", "⟨strikemgone⟩ ~5 to ~10"},
		{"code", "`a` ``b`c`` ` x ` `*d*` `unclosed", "⟨codema⟩ ⟨codemb`c⟩ ⟨codemx⟩ ⟨codem*d*⟩ `unclosed"},
		{"code_first", "*a `b* c`", "*a ⟨codemb* c⟩"},
		{"escape", `\*a\* \# \\ \d`, `*a* # \ \d`},
		{"entity", "&lt;&amp;&nbsp;&copy;&#65;&#x42;&unknown; & AT&T;", "<&\u00a0©AB&unknown; & AT&T;"},
		{"entity_control", "a&#27;[31mb &#x202e;", "a␛[31mb \uFFFD"},
		{"link", "[*a* b](https://x.io/y_z_) c", "⟨em;linkm⟦https://x.io/y_z_⟧a⟩⟨linkm b⟩⟦⟧ c"},
		{"link_title", `[a](<https://x.io/b c> "t")`, "⟨linkm⟦https://x.io/b%20c⟧a⟦⟧⟩"},
		{"link_other_scheme", "[a](file:///etc/passwd) [b](javascript:x)", "⟨linkma⟩⟨urlm (file:///etc/passwd)⟩ ⟨linkmb⟩⟨urlm (javascript:x)⟩"},
		{"link_disguised", "[www.bank.com](https://evil.io)", "⟨linkm⟦https://evil.io⟧www.bank.com⟩⟨urlm⟦⟧ (⟦https://evil.io⟧https://evil.io⟦⟧)⟩"},
		{"link_control", "[a](https://x.io/\x1b]8;;evil)", "⟨linkm⟦https://x.io/%E2%90%9B]8;;evil⟧a⟦⟧⟩"},
		{"no_link", "[a] (b) [1] [x][y] [^2]", "[a] (b) [1] [x][y] [^2]"},
		{"bare_url", "see https://x.io/a_b_c(d), or (https://y.io).", "see ⟨linkm⟦https://x.io/a_b_c(d)⟧https://x.io/a_b_c(d)⟩⟦⟧, or (⟨linkm⟦https://y.io⟧https://y.io⟩⟦⟧)."},
		{"autolink", "<https://x.io> <me@x.io>", "⟨linkm⟦https://x.io⟧https://x.io⟩⟦⟧ ⟨linkm⟦mailto:me@x.io⟧me@x.io⟦⟧⟩"},
		{"image", "![alt](https://x.io/i.png)", "⟨linkm⟦https://x.io/i.png⟧alt⟦⟧⟩"},
		{"html", "a<b>c</b> Vec<T> 1<2 a<br>b", "a⟨htmlm<b>⟩c⟨htmlm</b>⟩ Vec⟨htmlm<T>⟩ 1<2 a\nb"},
		{"tex", `$a_1 * b_2$ \(x_1*y*z\) $$a*b*$$ costs $5 and *$10*`, `⟨mathm$a_1 * b_2$⟩ ⟨mathm\(x_1*y*z\)⟩ ⟨mathm$$a*b*$$⟩ costs $5 and ⟨emm$10⟩`},
		{"over_lines", "*a\nb* c", "⟨emma⟩\n⟨emmb⟩ c"},
		{"unclosed", "*a `b [c **d", "*a `b [c **d"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			out := render(markdown.Options{Styles: visible, Hyperlinks: true}, tt.in, 80)
			got := strings.NewReplacer("\x1b[0m", "⟩", "\x1b[", "⟨", "\x1b]8;;", "⟦", "\x1b\\", "⟧").Replace(strings.TrimSuffix(out, "\n"))
			if got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

// TestTail shows what is seen of a block that is not finished.
func TestTail(t *testing.T) {
	for _, tt := range []struct{ name, in, committed, tail string }{
		{"text", "a\nb", "", "a\nb"},
		{"settled", "a\nb\nc", "a\n", "b\nc"},
		{"open_strong", "**a", "", "⟨strongma⟩"},
		{"half_mark", "**a*", "", "⟨strongma⟩"},
		{"mark_to_come", "a **", "", "a "},
		{"open_code", "a `b", "", "a ⟨codemb⟩"},
		{"open_link", "[a](https://x", "", "⟨linkma⟩⟨urlm (https://x)⟩"},
		{"bullet_to_come", "a\n-", "", "a"},
		{"heading_to_come", "##", "", ""},
		{"heading", "## a", "", "⟨h2;markm##⟩⟨h2m a⟩"},
		{"fence_to_come", "a\n``", "", "a"},
		{"underline_to_come", "a\n==", "", "a"},
		{"table", "|a|b|\n|-|-|\n|c", "", "⟨headma⟩ ⟨rulem│⟩ ⟨headmb⟩\n⟨rulem──┼──⟩\nc ⟨rulem│⟩"},
		{"code", "```go\nfunc", "⟨markm```go⟩\n", "⟨block;KeywordDeclarationmfunc⟩"},
		{"half_character", "a\xe6\x97", "", "a"},
		{"open_over_lines", "*a\nb\nc", "", "⟨emma⟩\n⟨emmb⟩\n⟨emmc⟩"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			show := func(p []byte) string {
				return strings.NewReplacer("\x1b[0m", "⟩", "\x1b[", "⟨").Replace(string(p))
			}
			r := markdown.New(markdown.Options{Styles: visible})
			r.Write([]byte(tt.in))
			if got := show(r.Commit(nil, 80)); got != tt.committed {
				t.Errorf("committed %q, want %q", got, tt.committed)
			}
			if got := show(r.Tail(nil, 80)); got != tt.tail {
				t.Errorf("tail %q, want %q", got, tt.tail)
			}
		})
	}
}

// stream renders a document that arrives in random pieces, and looks at the tail after
// each.
func stream(o markdown.Options, doc string, columns int, rng *rand.Rand) string {
	r := markdown.New(o)
	var out []byte
	for rest := doc; rest != ""; {
		n := min(1+rng.IntN(20), len(rest))
		r.Write([]byte(rest[:n]))
		rest = rest[n:]
		out = r.Commit(out, columns)
		r.Tail(nil, columns)
	}
	return string(r.End(out, columns))
}

// TestPieces checks that it does not matter how a document arrives.
func TestPieces(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	check := func(doc string) {
		for _, o := range []markdown.Options{
			{Styles: visible}, {Styles: visible, Wrap: markdown.Auto, WrapCode: true}, {Wrap: 30}, {},
		} {
			if got, want := stream(o, doc, 50, rng), render(o, doc, 50); got != want {
				t.Fatalf("%q with %+v: got\n%s\nwant\n%s", doc, o, got, want)
			}
		}
	}
	for _, doc := range documents(t) {
		for range 3 {
			check(doc)
		}
	}
	for range 1000 {
		check(randomDocument(rng))
	}
}

// TestLongLines have lines, paragraphs, tables and code beyond what is held back.
// TestCellsDoNotWrapWithRoom: the columns of a table are as wide as what wraps their rows.
func TestCellsDoNotWrapWithRoom(t *testing.T) {
	for name, cell := range map[string]string{
		"family": "family \U0001F469\u200d\U0001F469\u200d\U0001F467 here", "skin": "wave \U0001F44B\U0001F3FD now", "devanagari": "\u0928\u092e\u0938\u094d\u0924\u0947 and \u0915\u094d\u0937\u093f",
	} {
		t.Run(name, func(t *testing.T) {
			doc := "| a | b |\n|---|---|\n| " + cell + " | x |\n| y | z |\n"
			if out := stream(markdown.Options{Styles: &markdown.Styles{}, Wrap: markdown.Auto}, doc, 120, rand.New(rand.NewPCG(1, 2))); strings.Count(out, "\n") != 4 {
				t.Errorf("the table has not four lines:\n%s", out)
			}
		})
	}
	t.Run("rows_after_the_first_hundred", func(t *testing.T) {
		var doc strings.Builder
		doc.WriteString("| row | n |\n|---|---|\n")
		for i := range 130 {
			fmt.Fprintf(&doc, "| r%d | %d |\n", i*10, i)
		}
		if out := stream(markdown.Options{Styles: &markdown.Styles{}, Wrap: markdown.Auto}, doc.String(), 80, rand.New(rand.NewPCG(1, 2))); strings.Count(out, "\n") != 132 {
			t.Errorf("%d lines", strings.Count(out, "\n"))
		}
	})
}

func TestLongLines(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for _, tt := range []struct{ name, doc string }{
		{"line", strings.Repeat("word ", 40_000)},
		{"word", strings.Repeat("x", 200_000)},
		{"wide", strings.Repeat("漢字", 50_000)},
		{"open_mark", "*" + strings.Repeat("line\n", 500)},
		{"table", "|a|b|\n|-|-|\n" + strings.Repeat("|one|two|\n", 500)},
		{"comment", "```go\n/*" + strings.Repeat("comment\n", 1000) + "*/\n```\n"},
		{"string", "```go\nvar s = `" + strings.Repeat("string\n", 7000) + "`\n```\n"},
		{"code_line", "```go\n" + strings.Repeat(strings.Repeat("x", 40)+"+", 1000) + "\n```\n"},
		{"marks", strings.Repeat("*a ", 3000)},
		{"brackets", strings.Repeat("[", 20_000) + strings.Repeat("](x)", 5000)},
		{"backticks", strings.Repeat("` `` ``` ", 3000)},
		{"angles", strings.Repeat("<", 60_000)},
		{"quotes", strings.Repeat("> ", 1000) + "a"},
		{"parentheses", strings.Repeat(`\( `, 10_000) + strings.Repeat(`\[ `, 10_000)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			pieces := func() (out []byte) {
				r := markdown.New(markdown.Options{Styles: colored, Wrap: markdown.Auto})
				for rest := []byte(tt.doc); len(rest) > 0; {
					n := min(1+rng.IntN(4000), len(rest))
					r.Write(rest[:n])
					rest = rest[n:]
					out = r.Commit(out, 80)
				}
				return r.End(out, 80)
			}
			whole := func() string { return render(markdown.Options{Styles: colored, Wrap: markdown.Auto}, tt.doc, 80) }
			out, want := pieces(), whole()
			for range 4 { // a pattern of the highlighter that takes too long by the clock is given up
				if string(out) == want {
					break
				}
				out, want = pieces(), whole()
			}
			if string(out) != want {
				t.Error("pieces and the whole differ")
			}
			got := strings.Join(strings.FieldsFunc(ansi.Strip(string(out)), func(r rune) bool { return strings.ContainsRune(" \n│─┼>|-*`", r) }), "")
			source := strings.Join(strings.FieldsFunc(tt.doc, func(r rune) bool { return strings.ContainsRune(" \n>|-*`", r) }), "")
			switch tt.name {
			case "brackets", "backticks", "parentheses": // their marks are not shown
			default:
				if got = strings.ReplaceAll(got, "go", ""); got != strings.ReplaceAll(source, "go", "") {
					t.Errorf("text was lost: %d characters of %d", len(got), len(source))
				}
			}
		})
	}
}

func FuzzRenderer(f *testing.F) {
	for _, doc := range documents(f) {
		f.Add(doc, 60, 7)
	}
	f.Add("*a\x1b]8;;x\x07&#27;[2J\u202e|", 1, 1)
	f.Add("> - 1. [ ] a\n\n|a|\n|-|\n|`\n```\n\t", 3, 2)
	f.Fuzz(func(t *testing.T, doc string, columns, size int) {
		columns = 1 + abs(columns)%200
		size = 1 + abs(size)%64
		for _, o := range []markdown.Options{{Styles: decorated, Wrap: markdown.Auto, WrapCode: true}, {Styles: decorated}, {Wrap: 20}} {
			want := render(o, doc, columns)
			r := markdown.New(o)
			var got []byte
			for rest := []byte(doc); len(rest) > 0; {
				n := min(size, len(rest))
				r.Write(rest[:n])
				rest = rest[n:]
				got = r.Commit(got, columns)
				checkSafe(t, r.Tail(nil, columns))
			}
			got = r.End(got, columns)
			if string(got) != want {
				t.Fatalf("pieces of %d give\n%q\nthe whole\n%q", size, got, want)
			}
			checkSafe(t, got)
		}
	})
}

func abs(n int) int { return max(n, -(n + 1)) }

// checkSafe fails if there is anything but styles and links that a terminal obeys.
func checkSafe(t *testing.T, out []byte) {
	t.Helper()
	rest := escapes.ReplaceAll(out, nil)
	if i := bytes.IndexFunc(rest, func(r rune) bool {
		return r < ' ' && r != '\n' && r != '\t' || r >= 0x7f && r <= 0x9f || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069
	}); i >= 0 {
		t.Fatalf("%q has a control character", rest[max(0, i-10):min(len(rest), i+10)])
	}
}
