package search_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"loki/internal/conversation/session/search"
)

// shelf is a source in memory: texts by document.
type shelf struct {
	mu    sync.Mutex
	texts map[string][]string
	reads []string
	bad   map[string]bool
}

func newShelf(texts map[string][]string) *shelf { return &shelf{texts: texts} }

func (s *shelf) List(context.Context, map[string]string) (list []search.Document, _ error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, key := range slices.Sorted(maps.Keys(s.texts)) {
		list = append(list, search.Document{Key: key, Stamp: strings.Join(s.texts[key], "|"), Name: "n" + key, At: time.Unix(1_800_000_000, 0)})
	}
	return list, nil
}

// Read returns what is behind the texts that were read; the cursor is their number.
func (s *shelf) Read(_ context.Context, key string, cursor []byte) (c search.Change, _ error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads = append(s.reads, key)
	if s.bad[key] {
		return c, errors.New("it cannot be read")
	}
	n := 0
	if cursor == nil {
		c.Drop = -1
	} else {
		_, _ = fmt.Sscan(string(cursor), &n)
	}
	if gone := n - len(s.texts[key]); gone > 0 {
		c.Drop, n = gone, len(s.texts[key])
	}
	for _, text := range s.texts[key][n:] {
		c.Add = append(c.Add, search.Text{Role: "user", Body: text})
	}
	c.Cursor = fmt.Append(nil, len(s.texts[key]))
	return c, nil
}

func index(t testing.TB, sources ...search.Source) *search.Index {
	return &search.Index{Path: filepath.Join(t.TempDir(), "cache", "search.db"), Sources: sources}
}

// found returns the keys of what a query finds, best first.
func found(t testing.TB, x *search.Index, query string) string {
	t.Helper()
	f, err := x.Search(t.Context(), query, 10)
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	for _, r := range f.Results {
		keys = append(keys, r.Key)
	}
	return strings.Join(keys, " ")
}

func TestQueries(t *testing.T) {
	t.Parallel()
	x := index(t, newShelf(map[string][]string{
		"a": {"The garden in winter", "nothing else"},
		"b": {"Gärten und gardens: winter IN the garden, garden"},
		"c": {"我喜欢花园的早晨", "プログラミング言語", "한국어를 공부합니다", "สวนดอกไม้"},
		"d": {"run gpt-4o on file_name.go, at 3.14; ΑΘΗΝΑ Ёлка straße"},
		"e": {"Die Do\u00adnau\u00addampf\u00adschiff\u00adfahrt, word\u2060joiner\u200b"},
	}))
	for _, tt := range []struct{ name, query, want string }{
		{"one_word", "nothing", "a"},
		{"all_words", "winter garden", "b a"},
		{"not_in_one_text", "winter nothing", ""},
		{"beginning", "gard", "b a"},
		{"short_words_are_whole", "ga", ""},
		{"case_and_accents", "garten", "b"},
		{"other_case", "GARDENS", "b"},
		{"soft_hyphens", "Donaudampfschifffahrt wordjoiner", "e"},
		{"soft_hyphens_in_the_query", "donau\u00addampf", "e"},
		{"phrase", `"in winter"`, "a"},
		{"phrase_is_whole", `"in wint"`, ""},
		{"phrase_that_is_not_closed", `"garden in`, "a"},
		{"phrase_and_word", `"in the" win`, "b"},
		{"without", "winter -gardens", "a"},
		{"without_a_phrase", `winter -"in winter"`, "b"},
		{"only_without", "-winter", ""},
		{"chinese", "花园", "c"},
		{"chinese_inside", "欢花", "c"},
		{"chinese_one", "晨", "c"},
		{"chinese_apart", "我花", ""},
		{"japanese", "言語", "c"},
		{"korean", "공부", "c"},
		{"thai", "ดอก", "c"},
		{"parts_of_a_word", "gpt-4o", "d"},
		{"file", "file_name.go", "d"},
		{"half_a_file", "file_na", "d"},
		{"number", "3.14", "d"},
		{"number_apart", "14.3", ""},
		{"greek", "αθήνα", "d"},
		{"russian", "елка", "d"},
		{"name", "nd", "d"},
		{"empty", "", ""},
		{"signs", `!? "" -- ""`, ""},
		{"operators", "NEAR(garden) OR * ^winter:", ""},
		{"operators_as_words", "winter AND", ""},
		{"quotes", `'gardens' "winter`, "b"},
		{"nul", "garden\x00winter", "b"},
		{"broken", "gar\xffden", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := found(t, x, tt.query)
			if tt.name == "nul" || tt.name == "name" { // what matters is that there is no error
				return
			}
			if got != tt.want {
				t.Errorf("%q finds %q, want %q", tt.query, got, tt.want)
			}
		})
	}
}

func TestRefresh(t *testing.T) {
	t.Parallel()
	s := newShelf(map[string][]string{"a": {"one", "two"}, "b": {"two"}})
	x := index(t, s)
	want := func(query, want string) {
		t.Helper()
		if got := found(t, x, query); got != want {
			t.Errorf("%q finds %q, want %q", query, got, want)
		}
	}
	reads := func(want ...string) {
		t.Helper()
		if !slices.Equal(s.reads, want) {
			t.Errorf("read %v, want %v", s.reads, want)
		}
		s.reads = nil
	}
	want("two", "a b")
	reads("a", "b")
	want("one", "a")
	reads()
	s.texts["b"] = []string{"two", "three"} // more
	want("three", "b")
	reads("b")
	s.texts["a"] = []string{"one"} // taken back
	want("two", "b")
	s.texts["a"] = []string{"one", "four"}
	want("four", "a")
	delete(s.texts, "b")
	want("three", "")
	s.texts["a"] = nil
	want("one", "")
	want("na", "a")

	s.texts["c"], s.bad = []string{"five"}, map[string]bool{"c": true}
	skipped := ""
	x.Skipped = func(key string, _ error) { skipped += key }
	want("five", "")
	want("five", "")
	if skipped != "c" {
		t.Errorf("skipped %q, want c once", skipped)
	}
	s.bad, s.texts["c"] = nil, []string{"five", "six"}
	want("five", "c")
}

func TestForget(t *testing.T) {
	t.Parallel()
	s := newShelf(map[string][]string{"a": {"xylophone", "other"}, "b": {"other"}})
	x := index(t, s)
	if err := x.Forget(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(x.Path); err == nil {
		t.Error("forgetting made an index")
	}
	found(t, x, "other")
	if err := x.Forget(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(x.Path)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(data), "xylophone") {
		t.Error("the words of a forgotten document are in the file")
	}
	delete(s.texts, "a")
	if got := found(t, x, "other"); got != "b" {
		t.Errorf("found %q", got)
	}
}

func TestSnippet(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("before ", 100) + "the   needle\tin\n\nthe    needle  haystack " + strings.Repeat("after ", 100)
	x := index(t, newShelf(map[string][]string{"a": {long}, "b": {"東京の needle\x1b[31m."}, "c": {strings.Repeat("needlework", 30)}}))
	f, err := x.Search(t.Context(), "needle", 10)
	if err != nil || len(f.Results) != 3 || f.Total != 3 || f.More {
		t.Fatalf("%+v, %v", f, err)
	}
	for _, r := range f.Results {
		runes := []rune(r.Snippet.Text)
		if len(runes) > 320 || len(r.Snippet.Marks) == 0 || strings.ContainsAny(r.Snippet.Text, "\x1b\n\t") || strings.Contains(r.Snippet.Text, "  ") {
			t.Errorf("%s: %q, %v", r.Key, r.Snippet.Text, r.Snippet.Marks)
		}
		for _, m := range r.Snippet.Marks {
			if got := string(runes[m[0]:m[1]]); !strings.HasPrefix(got, "needle") {
				t.Errorf("%s: %q is marked in %q", r.Key, got, r.Snippet.Text)
			}
		}
		if r.Key == "a" && !strings.HasPrefix(r.Snippet.Text, "…before ") {
			t.Errorf("snippet %q", r.Snippet.Text)
		}
	}
}

// TestDamaged damages the file in many places: a search finds the same as with a new one.
func TestDamaged(t *testing.T) {
	t.Parallel()
	texts := make(map[string][]string)
	for i := range 40 {
		texts[fmt.Sprint("k", i)] = []string{fmt.Sprint("garden number", i), strings.Repeat("filler text ", 50)}
	}
	s := newShelf(texts)
	x := index(t, s)
	want := found(t, x, "number7")
	whole, err := os.ReadFile(x.Path)
	if err != nil {
		t.Fatal(err)
	}
	damage := map[string][]byte{
		"empty": nil, "text": []byte("hello"), "half": whole[:len(whole)/2], "torn": whole[:len(whole)-100],
		"no_header": append(make([]byte, 200), whole[200:]...),
		"other":     append([]byte("SQLite format 3\x00"), make([]byte, 5000)...),
	}
	// The version is at 60 in the header.
	version := slices.Clone(whole)
	version[63]++
	damage["version"] = version
	pages := len(whole) / 4096
	for page := 1; page < pages; page += max(pages/6, 1) {
		broken := slices.Clone(whole)
		for i := range 400 {
			broken[page*4096+i] ^= 0x55
		}
		damage[fmt.Sprint("page", page)] = broken
	}
	for name, data := range damage {
		if err := os.WriteFile(x.Path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		s.texts["k3"] = []string{"garden number3", name} // something to write
		if got := found(t, x, "number7"); got != want {
			t.Errorf("%s: found %q, want %q", name, got, want)
		}
	}
}

func TestSeveralAtOnce(t *testing.T) {
	t.Parallel()
	texts := make(map[string][]string)
	for i := range 50 {
		texts[fmt.Sprint("k", i)] = []string{"garden", fmt.Sprint("number", i)}
	}
	path := index(t).Path
	var wg sync.WaitGroup
	for range 6 {
		wg.Go(func() { // an Index of its own, as other processes have
			x := &search.Index{Path: path, Sources: []search.Source{newShelf(texts)}}
			for i := range 5 {
				f, err := x.Search(t.Context(), fmt.Sprint("number", i), 10)
				if err != nil || len(f.Results) == 0 {
					t.Errorf("%d: %+v, %v", i, f, err)
				}
			}
		})
	}
	wg.Wait()
	x := &search.Index{Path: path, Sources: []search.Source{newShelf(texts)}}
	f, err := x.Search(t.Context(), "garden", 10)
	if err != nil || f.Total != 50 || len(f.Results) != 10 {
		t.Errorf("%+v, %v", f, err)
	}
}

func TestCanceled(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	x := index(t, newShelf(map[string][]string{"a": {"one"}}))
	if _, err := x.Search(ctx, "one", 10); !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
	if got := found(t, x, "one"); got != "a" {
		t.Errorf("found %q", got)
	}
}

// The environment of a child process, which is this test binary: the file of its index.
const childFile = "SEARCH_TEST_FILE"

func TestMain(m *testing.M) {
	if path := os.Getenv(childFile); path != "" {
		x := &search.Index{Path: path, Sources: []search.Source{loud{bulk()}}}
		_, _ = x.Search(context.Background(), "", 1)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// bulk returns a source of which one refresh makes several transactions.
func bulk() *shelf {
	texts := make(map[string][]string)
	for i := range 60 {
		texts[fmt.Sprintf("k%02d", i)] = []string{fmt.Sprint("number", i), "filler" + strings.Repeat(" -", 60_000)}
	}
	return newShelf(texts)
}

// loud says which documents it reads.
type loud struct{ *shelf }

func (l loud) Read(ctx context.Context, key string, cursor []byte) (search.Change, error) {
	fmt.Println(key)
	return l.shelf.Read(ctx, key, cursor)
}

// TestKilled kills a process while it refreshes the index: the next one goes on with what is there.
func TestKilled(t *testing.T) {
	t.Parallel()
	for _, after := range []int{1, 50, 58} {
		s := bulk()
		x := index(t, s)
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), childFile+"="+x.Path)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		for range after {
			if !lines.Scan() {
				t.Fatal("the child has ended")
			}
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // it was killed
		for _, i := range []int{0, after - 1, after, 59} {
			f, err := x.Search(t.Context(), fmt.Sprintf(`"number%d"`, i), 10)
			if err != nil || f.Total != 1 || f.Results[0].Key != fmt.Sprintf("k%02d", i) {
				t.Errorf("killed after %d: %d: %+v, %v", after, i, f, err)
			}
		}
		if after >= 50 && len(s.reads) == 60 {
			t.Errorf("killed after %d: all was read again", after)
		}
	}
}
