package assets_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"loki/internal/base/value"
)

// file is a file as collect.sh reports it.
type file struct{ path, text, note string }

func filesOf(t testing.TB, v value.Value) []file {
	t.Helper()
	member, _ := v.AsObject().Get("files")
	list, ok := member.AsList()
	if !ok {
		t.Fatalf("files is %s, not an array", member.Text())
	}
	var files []file
	for i := range list.Len() {
		f := list.At(i)
		files = append(files, file{text(t, f, "path"), text(t, f, "text"), text(t, f, "note")})
	}
	if got := number(t, v, "file_count"); got != strconv.Itoa(len(files)) {
		t.Errorf("file_count is %s, but there are %d files", got, len(files))
	}
	return files
}

func paths(files []file) []string {
	var list []string
	for _, f := range files {
		list = append(list, f.path)
	}
	return list
}

func prompt(s string) value.Value { return object("initial_prompt", s) }

// write makes a file and its directories below dir. File systems that refuse the name
// make it return false.
func write(t testing.TB, dir, name string, content []byte) bool {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return false
	}
	return os.WriteFile(path, content, 0o600) == nil
}

// repaired returns content as text: U+FFFD for each byte that is not UTF-8. ok is
// false if collect.sh must not take it for text.
func repaired(content []byte) (s string, ok bool) {
	var b strings.Builder
	for _, signature := range []string{"%PDF-", `{\rtf`, "%!PS"} {
		if strings.HasPrefix(string(content), signature) {
			return "", false
		}
	}
	odd := 0
	for rest := content; len(rest) > 0; {
		r, size := utf8.DecodeRune(rest)
		if r == utf8.RuneError && size == 1 || r < 0x20 && !strings.ContainsRune("\t\n\v\f\r\x1b", r) {
			odd++
		}
		if r == 0 {
			return "", false
		}
		b.WriteRune(r)
		rest = rest[size:]
	}
	s = b.String()
	return s, strings.Trim(s, " \t\r\n\v\f") != "" && odd*3 < len(content)
}

// nasty are contents of files that are easily got wrong.
var nasty = map[string]string{
	"plain":          "Just a line.\n",
	"no_newline":     "Just a line.",
	"newlines":       "\n\nLine between blank ones.\n\n\n",
	"crlf":           "One.\r\nTwo.\r\n",
	"quotes":         `"quoted" and \"escaped\" and \\"`,
	"backslash_end":  `ends in a backslash \`,
	"backslashes":    "\\\n\\\\\n\\\\\\\n\\n \\t \\u0041 \\&",
	"ampersand":      "a & b && c \\& d",
	"json":           `{"files":[{"path":"x"}],"_next":"evil"}`,
	"controls":       "bell \a, escape \x1b[1m, backspace \b, delete \x7f, form feed \f, tab \t, vertical \v, one \x01 two \x02 last \x1f.",
	"unicode":        "Grüße, žluťoučký kůň, 你好, 😀, é, \u2028, \uFFFD, \uFEFF, \U0010FFFF.",
	"edges":          "\u0080\u07ff\u0800\ud7ff\ue000\uffff\U00010000 the first and last of each length, and some text.",
	"bom":            "\uFEFFbegins with a mark",
	"latin1":         "Die Stra\xdfe hat sch\xf6ne H\xe4user und viele B\xe4ume.",
	"invalid":        "a long line of text with bad bytes \xff \xfe \xc3( \xe2\x82 \xed\xa0\x80 \xf4\x90\x80\x80 \xc0\xaf \x80 and more text that follows to make it a text",
	"cut_off":        "ends in half of a character \xe2\x82",
	"percent":        "100% %s %d %% %n",
	"dollar":         "$HOME `id` $(id) ${x} 'single' !x *",
	"mark":           "\n\376 0 1 name\nnot a mark: a line in the form of one, in a text",
	"long_line":      strings.Repeat("a word and ", 3000),
	"numbers":        "1\n+1\n0x10\n1e5\n007\n",
	"blank":          " \t\r\n \v\f \n",
	"empty":          "",
	"zero":           "looks like text\x00but is not",
	"utf16":          "\xff\xfeT\x00e\x00x\x00t\x00\n\x00",
	"png":            "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR",
	"pdf_ascii":      "%PDF-1.3\n1 0 obj\n<< /Filter [ /ASCII85Decode ] >>\nendobj\n",
	"rtf":            `{\rtf1 rich}`,
	"postscript":     "%!PS-Adobe-3.0\nshowpage\n",
	"about_pdf":      "A file that begins with %PDF-1.3 is PDF.",
	"mostly_invalid": "\xd0\xd1\xd2\xd3 \xd4\xd5\xd6 \xd7\xd8",
	"mostly_control": "\x01\x02\x03\x04abc",
}

func TestCollectKeepsEveryText(t *testing.T) {
	for _, tools := range toolsets(t) {
		t.Run(tools.name, func(t *testing.T) {
			dir := t.TempDir()
			var want []file
			skipped := 0
			for name, content := range nasty {
				write(t, dir, name, []byte(content))
				if s, ok := repaired([]byte(content)); ok {
					want = append(want, file{path: name, text: s})
				} else {
					skipped++
				}
			}
			for _, name := range []string{
				"with blanks", " blank in front", "blank behind ", "quote\"'s", "back\\slash", "back\\\\n", "new\nline", "line end\n",
				"tab\t", "-rf", "--", "*", "?[a]", "a=b", "$HOME", "ünï", "€ 😀", "bad\xff", "%s", "esc\x1b[1m", "~", "#", "&", "deep/er/and/deeper/file", "-d/x", "x\n/\ny",
			} {
				if write(t, dir, name, []byte("about "+name)) {
					want = append(want, file{path: strings.ToValidUTF8(name, "\uFFFD"), text: strings.ToValidUTF8("about "+name, "\uFFFD")})
				}
			}
			for _, name := range []string{".hidden", ".git/config", "sub/.git/x", "node_modules/m/index.js", "sub/node_modules/x", "sub/.env"} {
				write(t, dir, name, []byte("must not be read"))
			}
			slices.SortFunc(want, func(a, b file) int { return strings.Compare(a.path, b.path) })

			got := tools.run(t, dir, "collect.sh", prompt(""))
			files := filesOf(t, got.object)
			// Names were sorted as bytes on disk, which only the bad one is not any more.
			slices.SortStableFunc(files, func(a, b file) int { return strings.Compare(a.path, b.path) })
			if !slices.Equal(paths(files), paths(want)) {
				t.Fatalf("paths:\n got %q\nwant %q", paths(files), paths(want))
			}
			for i := range want {
				if files[i] != want[i] {
					t.Errorf("%q:\n got %q\nwant %q", want[i].path, files[i].text, want[i].text)
				}
			}
			if n := number(t, got.object, "skipped"); n != strconv.Itoa(skipped) {
				t.Errorf("skipped %s, want %d", n, skipped)
			}
			if got.stderr != "" {
				t.Errorf("stderr: %s", got.stderr)
			}
		})
	}
}

// Random bytes, with those that need care more often than others.
func TestCollectKeepsRandomText(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	pieces := []string{"\\", "\"", "\n", "\r", "\t", "\x1b", "é", "€", "😀", "\xc3", "\xe2\x82", "\xff", "\xfe", "\xed\xa0\x80", "\x7f", " ", "&", "%"}
	dir := t.TempDir()
	var want []file
	for i := range 60 {
		var b strings.Builder
		for range rng.IntN(300) {
			if rng.IntN(3) == 0 {
				b.WriteString(pieces[rng.IntN(len(pieces))])
			} else {
				b.WriteString("text "[:1+rng.IntN(5)])
			}
		}
		name := fmt.Sprintf("f%02d", i)
		write(t, dir, name, []byte(b.String()))
		if s, ok := repaired([]byte(b.String())); ok {
			want = append(want, file{path: name, text: s})
		}
	}
	for _, tools := range toolsets(t) {
		t.Run(tools.name, func(t *testing.T) {
			got := filesOf(t, tools.run(t, dir, "collect.sh", prompt(".")).object)
			if !slices.Equal(paths(got), paths(want)) {
				t.Fatalf("paths:\n got %q\nwant %q", paths(got), paths(want))
			}
			for i := range want {
				if got[i] != want[i] {
					t.Errorf("%s:\n got %q\nwant %q", want[i].path, got[i].text, want[i].text)
				}
			}
		})
	}
}

// samples makes a small tree and returns its directory.
func samples(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range map[string]string{
		"docs/b.md": "b", "docs/a.md": "a", "docs/sub/c.md": "c", "docs-2/d.md": "d", "two words/e.md": "e",
		".config/f.md": "f", "top.md": "top", "ünï/g.md": "g", "*/h.md": "h", "img/x.png": "\x00",
	} {
		write(t, dir, name, []byte(content))
	}
	return dir
}

func TestCollectReadsThePrompt(t *testing.T) {
	dir := samples(t)
	all := []string{"*/h.md", "docs-2/d.md", "docs/a.md", "docs/b.md", "docs/sub/c.md", "top.md", "two words/e.md", "ünï/g.md"}
	for _, tt := range []struct {
		name, prompt string
		want         []string
	}{
		{"nothing", "", all},
		{"blanks", " \n\t ", all},
		{"dot", ".", all},
		{"directory", "docs", []string{"docs/a.md", "docs/b.md", "docs/sub/c.md"}},
		{"dot_slash", "./docs", []string{"docs/a.md", "docs/b.md", "docs/sub/c.md"}},
		{"dot_slashes", ".//./docs/sub", []string{"docs/sub/c.md"}},
		{"trailing_slash", "docs//", []string{"docs/a.md", "docs/b.md", "docs/sub/c.md"}},
		{"blanks_around", "\n docs/sub \n", []string{"docs/sub/c.md"}},
		{"dots", "docs/..", []string{"docs/../*/h.md", "docs/../docs-2/d.md", "docs/../docs/a.md", "docs/../docs/b.md", "docs/../docs/sub/c.md", "docs/../top.md", "docs/../two words/e.md", "docs/../ünï/g.md"}},
		{"absolute", dir + "/docs/sub", []string{dir + "/docs/sub/c.md"}},
		{"file", "top.md", []string{"top.md"}},
		{"hidden_by_name", ".config", []string{".config/f.md"}},
		{"blank_in_name", "two words", []string{"two words/e.md"}},
		{"home", "~/docs/sub", []string{dir + "/docs/sub/c.md"}},
		{"home_alone", "~", prefixed(dir+"/", all)},
		{"several_words", "top.md docs/sub", []string{"top.md", "docs/sub/c.md"}},
		{"several_lines", "top.md\n  two words  \r\n\n./docs-2", []string{"top.md", "two words/e.md", "docs-2/d.md"}},
		{"overlapping", "docs/b.md docs ./docs/sub/", []string{"docs/b.md", "docs/a.md", "docs/sub/c.md"}},
		{"not_ascii", "ünï", []string{"ünï/g.md"}},
		{"no_pattern", "*", []string{"*/h.md"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := toolsets(t)[0].run(t, dir, "collect.sh", prompt(tt.prompt))
			if files := filesOf(t, got.object); !slices.Equal(paths(files), tt.want) {
				t.Errorf("paths:\n got %q\nwant %q", paths(files), tt.want)
			}
			if next := text(t, got.object, "_next"); next != "" {
				t.Errorf("_next is %q", next)
			}
		})
	}
}

func prefixed(prefix string, names []string) []string {
	var list []string
	for _, n := range names {
		list = append(list, prefix+n)
	}
	return list
}

// A prompt may be escaped in any way that JSON knows, and stand anywhere in the state.
func TestCollectFindsThePromptInTheState(t *testing.T) {
	dir := samples(t)
	write(t, dir, "a \"b\" \\ 😀 é/x.md", []byte("x"))
	state := `{"a":["initial_prompt",{"initial_prompt":"docs"}],"b":{"initial_prompt":"docs"},"n":-1.5e3,"t":true,` +
		` "initial_prompt" : "\u0061 \"b\" \\ \ud83d\ude00 \u00e9\/x.md","z":"\"initial_prompt\":\"docs\""}`
	for _, tools := range toolsets(t) {
		t.Run(tools.name, func(t *testing.T) {
			v := tools.run(t, dir, "collect.sh", value.Value{}, "GRAPH_STATE="+state).object
			if got, want := paths(filesOf(t, v)), []string{"a \"b\" \\ 😀 é/x.md"}; !slices.Equal(got, want) {
				t.Errorf("paths: %q, want %q: %s", got, want, text(t, v, "message"))
			}
		})
	}
}

func TestCollectReadsAStateInAFile(t *testing.T) {
	dir := samples(t)
	state := object("a", strings.Repeat("\\\" padding ", 5000), "initial_prompt", "top.md", "z", "after")
	got := toolsets(t)[0].run(t, dir, "collect.sh", state)
	if files := filesOf(t, got.object); !slices.Equal(files, []file{{path: "top.md", text: "top"}}) {
		t.Errorf("files: %q", files)
	}
}

func TestCollectExplainsWhyThereIsNothing(t *testing.T) {
	dir := samples(t)
	if err := os.MkdirAll(filepath.Join(dir, "void"), 0o755); err != nil {
		t.Fatal(err)
	}
	locked := filepath.Join(dir, "locked")
	if err := os.MkdirAll(locked, 0); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ name, prompt, want string }{
		{"missing", "no/such \"place\"", `There is no file or directory called no/such in ` + dir},
		{"one_of_two", "docs dogs", "There is no file or directory called dogs in " + dir},
		{"a_question", "What is a graph?", "as in: loki -a digest ./docs"},
		{"empty_directory", "void", "No text file found in void."},
		{"only_binary", "img", "No text file found in img (1 empty, binary or unreadable)."},
		{"device", "/dev/null", "/dev/null is neither a file nor a directory."},
		{"locked", "locked", "The directory locked cannot be read."},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.name == "locked" && os.Geteuid() <= 0 {
				t.Skip("this user may read everything")
			}
			got := toolsets(t)[0].run(t, dir, "collect.sh", prompt(tt.prompt))
			if message := text(t, got.object, "message"); !strings.Contains(message, tt.want) {
				t.Errorf("message %q does not say %q", message, tt.want)
			}
			if next := text(t, got.object, "_next"); next != "nothing" {
				t.Errorf("_next is %q, want nothing", next)
			}
			if files := filesOf(t, got.object); len(files) != 0 {
				t.Errorf("files: %q", files)
			}
		})
	}
}

func TestCollectVariables(t *testing.T) {
	dir := samples(t)
	for _, tt := range []struct {
		name, env, member, want string
	}{
		{"two_sentences", "X=", "summary_request", "Summarize the text in 2 sentences."},
		{"one_sentence", "LLM_AGENT_VAR_SENTENCES=1", "summary_request", "Summarize the text in 1 sentence."},
		{"files_left_out", "LLM_AGENT_VAR_MAX_FILES=2", "tally", "2 files read, 7 left out (see the variable max_files)."},
		{"one_file", "LLM_AGENT_VAR_MAX_FILES=1", "tally", "1 file read, 8 left out (see the variable max_files)."},
		{"just_enough_files", "LLM_AGENT_VAR_MAX_FILES=8", "tally", "8 files read, 1 skipped (empty, binary or unreadable)."},
		{"no_number", "LLM_AGENT_VAR_SENTENCES=two", "message", `The variable sentences must be a whole number from 1 to 9999999, not "two".`},
		{"zero", "LLM_AGENT_VAR_MAX_FILES=0", "message", `The variable max_files must be a whole number from 1 to 9999999, not "0".`},
		{"too_large", "LLM_AGENT_VAR_MAX_BYTES=10000000", "message", `The variable max_bytes must be a whole number from 1 to 9999999, not "10000000".`},
		{"program", "LLM_AGENT_VAR_MAX_BYTES=1;id", "message", `The variable max_bytes must be a whole number from 1 to 9999999, not "1;id".`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := toolsets(t)[0].run(t, dir, "collect.sh", prompt(""), tt.env)
			if s := text(t, got.object, tt.member); s != tt.want {
				t.Errorf("%s is %q, want %q", tt.member, s, tt.want)
			}
			if next := text(t, got.object, "_next"); (next == "nothing") != (tt.member == "message") {
				t.Errorf("_next is %q", next)
			}
		})
	}
}

// A file is cut where the limit is, but not through a character.
func TestCollectCutsLongFiles(t *testing.T) {
	const content = "a\n\né\n€😀\n"
	dir := t.TempDir()
	write(t, dir, "f", []byte(content))
	for i, tools := range toolsets(t) {
		t.Run(tools.name, func(t *testing.T) {
			for limit := 1; limit <= len(content)+1; limit++ {
				if i > 0 && utf8.RuneStart(content[min(limit, len(content)-1)]) {
					continue // only cuts through characters differ between tools
				}
				got := filesOf(t, tools.run(t, dir, "collect.sh", prompt(""), fmt.Sprintf("LLM_AGENT_VAR_MAX_BYTES=%d", limit)).object)
				want := file{path: "f", text: content}
				if limit < len(content) {
					end := limit
					for !utf8.RuneStart(content[end]) {
						end--
					}
					want.text = content[:end]
					want.note = fmt.Sprintf("Only the first %d bytes were read.", limit)
				}
				if !slices.Equal(got, []file{want}) {
					t.Errorf("limit %d:\n got %q\nwant %q", limit, got, want)
				}
			}
		})
	}
}

// The limit is exact beyond the size of the blocks in which files are read.
func TestCollectCutsAtBlockSizes(t *testing.T) {
	dir := t.TempDir()
	content := strings.Repeat("0123456789abcde\n", 1024)
	write(t, dir, "f", []byte(content))
	for _, limit := range []int{4095, 4096, 4097, 8192, len(content) - 1, len(content)} {
		got := filesOf(t, toolsets(t)[0].run(t, dir, "collect.sh", prompt(""), fmt.Sprintf("LLM_AGENT_VAR_MAX_BYTES=%d", limit)).object)
		if len(got) != 1 || got[0].text != content[:limit] || (got[0].note == "") != (limit == len(content)) {
			t.Errorf("limit %d: %d files, note %q", limit, len(got), got[0].note)
		}
	}
}

func TestCollectSkipsUnreadableFiles(t *testing.T) {
	if os.Geteuid() <= 0 {
		t.Skip("this user may read everything")
	}
	dir := t.TempDir()
	write(t, dir, "open", []byte("text"))
	write(t, dir, "secret", []byte("text"))
	if err := os.Chmod(filepath.Join(dir, "secret"), 0); err != nil {
		t.Fatal(err)
	}
	got := toolsets(t)[0].run(t, dir, "collect.sh", prompt(""))
	if files := filesOf(t, got.object); len(files) != 1 || number(t, got.object, "skipped") != "1" {
		t.Errorf("files: %q, skipped %s", files, number(t, got.object, "skipped"))
	}
}

func FuzzCollect(f *testing.F) {
	for name, content := range nasty {
		f.Add(name, []byte(content))
	}
	f.Add("new\nline \\ \"quote\" \xff", []byte("text"))
	tools := toolsets(f)[0]
	f.Fuzz(func(t *testing.T, name string, content []byte) {
		if strings.ContainsAny(name, "/\x00") || strings.HasPrefix(name, ".") || name == "node_modules" || len(content) > 60000 {
			t.Skip("no such file is read, or not as a whole")
		}
		dir := t.TempDir()
		if !write(t, dir, name, content) {
			t.Skip("no such name is possible here")
		}
		wantName, _ := repaired([]byte(name))
		if wantText, ok := repaired(content); ok {
			got := filesOf(t, tools.run(t, dir, "collect.sh", prompt("")).object)
			if want := (file{path: wantName, text: wantText}); !slices.Equal(got, []file{want}) {
				t.Errorf("\n got %q\nwant %q", got, want)
			}
		} else if got := filesOf(t, tools.run(t, dir, "collect.sh", prompt("")).object); len(got) != 0 {
			t.Errorf("this is no text: %q", got)
		}
	})
}

func BenchmarkCollect(b *testing.B) {
	dir := b.TempDir()
	content := strings.Repeat("The quick brown fox — it jumps over \"lazy\" dogs.\n", 200)
	for i := range 200 {
		write(b, dir, fmt.Sprintf("f%03d.md", i), []byte(content))
	}
	tools := toolsets(b)[0]
	for b.Loop() {
		tools.run(b, dir, "collect.sh", prompt(""))
	}
}
