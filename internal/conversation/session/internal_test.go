package session

import (
	"bytes"
	"context"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"loki/internal/base/value/yamldoc"
	"loki/internal/llm/chat"
)

func TestSettingsAreMerged(t *testing.T) {
	base := Settings{Settings: chat.Settings{Model: "m", Sampling: chat.Sampling{Temperature: new(1.0), TopP: new(1.0)}}, SaveSession: new(true)}
	ours := base.clone()
	ours.Model, ours.TopP = "ours", nil
	theirs := base.clone()
	theirs.Temperature, theirs.RoleName, theirs.Model = new(0.5), "coder", "theirs"
	want := Settings{Settings: chat.Settings{Model: "ours", Sampling: chat.Sampling{Temperature: new(0.5)}}, SaveSession: new(true), RoleName: "coder"}
	if diff := cmp.Diff(want, merge(base, ours, theirs)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestSettingsHaveAllFields fails if a setting was added that files do not know.
func TestSettingsHaveAllFields(t *testing.T) {
	var s Settings
	if got, want := len(s.list()), len(s.Settings.List())+reflect.TypeFor[Settings]().NumField()-1; got != want {
		t.Errorf("%d fields are stored, there are %d", got, want)
	}
	s = Settings{Settings: chat.Settings{Sampling: chat.Sampling{Temperature: new(1.0)}}, AgentVariables: []Variable{{"a", "b"}}}
	c := s.clone()
	*c.Temperature, c.AgentVariables[0].Value = 2, "c"
	if *s.Temperature != 1 || s.AgentVariables[0].Value != "b" {
		t.Error("a copy shares what it was made from")
	}
}

func TestParseLog(t *testing.T) {
	const (
		message = `{"role":"user","parts":[{"type":"text","text":"x"}]}` + "\n"
		turn    = `{"mark":"turn","messages":1}` + "\n"
	)
	for _, tt := range []struct {
		name, log string
		groups    int
		messages  int    // in all groups
		torn      int    // bytes
		damages   string // what is reported to be damaged
	}{
		{"nothing", "", 0, 0, 0, ""},
		{"turn", message + turn, 1, 1, 0, ""},
		{"two", message + turn + message + turn, 2, 2, 0, ""},
		{"no_mark", message + turn + message, 1, 1, len(message), ""},
		{"no_line_feed", message + turn[:len(turn)-1], 0, 0, len(message+turn) - 1, ""},
		{"garbage_at_the_end", message + turn + "\x00\x00\n\x00", 1, 1, 4, ""},
		{"garbage_in_front", "\x00\n" + message + turn, 1, 1, 0, "\x00\n"},
		{"garbage_between", message + turn + "\x00\n" + message + turn, 2, 2, 0, "\x00\n"},
		{"empty_line", message + turn + "\n" + message + turn, 2, 2, 0, "\n"},
		{"line_without_meaning", "{}\n" + message + turn, 1, 1, 0, "{}\n"},
		{"message_too_many", message + message + turn, 1, 1, 0, message + message},
		{"message_too_many_between", message + turn + message + message + turn, 2, 2, 0, message + message},
		{"message_missing", turn, 1, 0, 0, ""},
		{"round_takes_its_messages", message + `{"mark":"round","messages":1}` + "\n", 1, 1, 0, ""},
		{"empty_takes_none", message + `{"mark":"empty"}` + "\n", 1, 0, 0, message},
		{"empty_takes_none_even_if_it_says_so", message + `{"mark":"empty","messages":1}` + "\n", 1, 0, 0, message},
		{"negative", message + `{"mark":"turn","messages":-1,"lead":-1,"replaces":-5,"keep":-2}` + "\n", 1, 0, 0, message},
		{"mark_of_the_future", `{"mark":"dream"}` + "\n" + message + turn, 2, 1, 0, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			groups, used, _, damages := parse([]byte(tt.log))
			n := 0
			for _, g := range groups {
				n += len(g.messages)
			}
			damaged := ""
			for _, d := range damages {
				damaged += tt.log[d.Offset : d.Offset+d.Size]
			}
			if len(groups) != tt.groups || n != tt.messages || len(tt.log)-used != tt.torn || damaged != tt.damages {
				t.Errorf("%d groups, %d messages, %d torn, damaged %q", len(groups), n, len(tt.log)-used, damaged)
			}
		})
	}
}

// TestMarks reads logs, also such as another program may have written.
func TestMarks(t *testing.T) {
	group := func(mark string, texts ...string) string {
		log := ""
		for _, text := range texts {
			role := chat.User
			if strings.HasPrefix(text, "s") {
				role = chat.System
			}
			log += `{"role":"` + string(role) + `","parts":[{"type":"text","text":"` + text + `"}]}` + "\n"
		}
		return log + mark + "\n"
	}
	first := group(`{"mark":"turn","messages":4,"lead":2}`, "s", "example", "a", "b")
	for _, tt := range []struct{ name, log, want string }{
		{"turns", first + group(`{"mark":"turn","messages":1}`, "c"), "s example a b c"},
		{"replaces", first + group(`{"mark":"turn","messages":1,"replaces":1}`, "c"), "s example a c"},
		{"replaces_nothing", first + group(`{"mark":"turn","messages":1,"replaces":0}`, "c"), "s example a b c"},
		{"replaces_all", first + group(`{"mark":"turn","messages":1,"replaces":2}`, "c"), "s example c"},
		{"replaces_more_than_there_is", first + group(`{"mark":"turn","messages":1,"replaces":5}`, "c"), "s example c"},
		{"keeps", first + group(`{"mark":"compaction","keep":1,"recap":"r"}`), "s\n\nr example b"},
		{"keeps_none", first + group(`{"mark":"compaction","recap":"r"}`), "s\n\nr example"},
		{"keeps_more_than_there_is", first + group(`{"mark":"compaction","keep":5,"recap":"r"}`), "s\n\nr example a b"},
		{"empty", first + group(`{"mark":"empty"}`) + group(`{"mark":"turn","messages":1}`, "c"), "c"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			groups, _, _, _ := parse([]byte(tt.log))
			var h history
			for _, g := range groups {
				h.apply(g)
				check(t, &h)
			}
			var texts []string
			for _, m := range h.live {
				texts = append(texts, m.Text())
			}
			if got := strings.Join(texts, " "); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// TestDraftThatBecameATurnIsNotRecovered: its process died between recording the turn and
// removing the draft.
func TestDraftThatBecameATurnIsNotRecovered(t *testing.T) {
	recorded := turnOp{user: chat.Text(chat.User, "q"), draft: "d"}
	var h history
	g, _ := recorded.group(&h)
	h.apply(g)
	for draft, want := range map[string]bool{"d": false, "e": true} {
		lost := turnOp{user: chat.Text(chat.User, "q"), draft: draft, abandoned: true}
		if _, ok := lost.group(&h); ok != want {
			t.Errorf("draft %s is recorded: %v", draft, ok)
		}
	}
}

func TestTurnOfNothingIsNotRecorded(t *testing.T) {
	s := NewTemp("", "x", nil, Options{}, Settings{})
	if err := s.Append(t.Context(), Turn{}); err != nil || len(s.pending) != 0 {
		t.Errorf("%d turns are to be written, %v", len(s.pending), err)
	}
}

func TestDamageIsReportedWhereSomebodyListens(t *testing.T) {
	const log = "\x00\n" + `{"mark":"turn"}` + "\n"
	var warnings []error
	for _, warn := range []func(context.Context, error){nil, func(_ context.Context, err error) { warnings = append(warnings, err) }} {
		s := New("", "x", nil, Options{Warn: warn}, State{})
		if torn := s.read(t.Context(), &s.view, []byte(log)); torn != nil || s.view.offset != int64(len(log)) {
			t.Errorf("read %d of %d bytes, %v", s.view.offset, len(log), torn)
		}
	}
	if len(warnings) != 1 || !strings.Contains(warnings[0].Error(), "session x: 2 bytes at 0 ") {
		t.Errorf("warnings %v", warnings)
	}
}

func TestTable(t *testing.T) {
	var table Table
	begin := func(id ID, alias Alias) *Session {
		return table.Begin(New("", id, nil, Options{}, State{Alias: alias}))
	}
	a := begin("1", "a")
	if a.ID() != "1" || table.Open("", "1") != a || table.PendingSession("", "a") != a {
		t.Error("a session that was begun is not open")
	}
	if table.PendingSession("", "b") != nil || table.PendingSession("other", "a") != nil || table.Open("other", "1") != nil {
		t.Error("a session is open under another name or in another scope")
	}
	if begin("2", "a") != a || table.Open("", "2") != nil {
		t.Error("two sessions of one alias are open")
	}
	if x, y := begin("3", ""), begin("4", ""); x == y || table.Open("", "3") != x || table.Open("", "4") != y || table.PendingSession("", "") != nil {
		t.Error("sessions without an alias are taken for the same")
	}
	table.SetAlias("", "1", "b")
	if a.Alias() != "b" || table.PendingSession("", "a") != nil || table.Open("", "1") != a {
		t.Error("a session that was renamed is still open under its old alias")
	}
	c := begin("5", "a")
	if c == a || table.PendingSession("", "a") != c {
		t.Error("the alias of a session that was renamed is not free")
	}
	table.sweep(tableKey{id: "5"}) // as for an earlier session of that id
	if table.Open("", "5") != c {
		t.Error("a session that lives was swept away")
	}
	table.Forget("other", "5")
	if table.Open("", "5") != c {
		t.Error("a session was forgotten for one of the same id in another scope")
	}
	table.Forget("", "5")
	if table.Open("", "5") != nil || table.PendingSession("", "a") != nil || table.Open("", "1") != a {
		t.Error("only the session that was deleted is to be forgotten")
	}
}

// takenLog is the log of a session whose alias another one has, whatever it is.
type takenLog struct{ Log }

func (takenLog) Create(_ context.Context, st State) error     { return AliasInUse(st.Alias) }
func (takenLog) Adopt(context.Context, Alias) (ID, error)     { return "theirs", nil }
func (takenLog) Update(context.Context, func(Tx) error) error { return nil }

// TestASessionBecomesTheOneOfItsAlias: of the alias that the user gave it, not of one that
// is made from the time.
func TestASessionBecomesTheOneOfItsAlias(t *testing.T) {
	named := New("", "ours", takenLog{}, Options{}, State{Alias: "a"})
	if err := named.Save(t.Context()); err != nil || named.ID() != "theirs" || !named.Stored() {
		t.Errorf("session %s, stored: %v, %v", named.ID(), named.Stored(), err)
	}
	unnamed := NewTemp("", "ours", takenLog{}, Options{}, Settings{})
	if err := unnamed.Save(t.Context()); !errors.Is(err, ErrAliasInUse) || unnamed.ID() != "ours" || unnamed.Stored() {
		t.Errorf("session %s, stored: %v, %v", unnamed.ID(), unnamed.Stored(), err)
	}
}

// failingLog is a log whose updates fail after all was written.
type failingLog struct {
	Log
	data  []byte
	state State
}

func (l *failingLog) Update(_ context.Context, change func(Tx) error) error {
	return errors.Join(change(failingTx{l}), errors.New("not committed"))
}

type failingTx struct{ *failingLog }

func (t failingTx) Size() (int64, error)              { return int64(len(t.data)), nil }
func (t failingTx) Tail(offset int64) ([]byte, error) { return t.data[offset:], nil }
func (t failingTx) Append(int64, []byte) error        { return nil }
func (t failingTx) State() (State, error)             { return t.state, nil }
func (t failingTx) SetState(State) error              { return nil }

// TestWhatAFailedUpdateWroteDoesNotCount: a database takes all of it back.
func TestWhatAFailedUpdateWroteDoesNotCount(t *testing.T) {
	s := New("", "x", &failingLog{}, Options{}, State{})
	s.stored = true
	for i := range 2 {
		s.Set(func(set *Settings) { set.Model = "m" })
		if err := s.Append(t.Context(), Turn{User: chat.Text(chat.User, "q")}); err == nil {
			t.Error("no error")
		}
		if !s.stale || s.base.Model != "" || s.view.offset != 0 || len(s.pending) != i+1 {
			t.Errorf("after %d turns: stale %v, base %+v, offset %d, %d pending", i+1, s.stale, s.base, s.view.offset, len(s.pending))
		}
	}
}

func TestEncodeLeavesOutWhatIsNotSet(t *testing.T) {
	for _, tt := range []struct {
		name  string
		state State
		want  string
	}{
		{"nothing", State{}, "model: \"\"\n"},
		{"empty_lists", State{Settings: Settings{AgentVariables: []Variable{}}, DataURLs: map[string]string{}}, "model: \"\"\n"},
		{"texts_without_quotes", State{Settings: Settings{Settings: chat.Settings{Model: "a:b"}}, Title: "a :b, c d"}, "model: a:b\ntitle: a :b, c d\n"},
		{"texts_with_quotes", State{Settings: Settings{Settings: chat.Settings{Model: "a: b"}}, Title: "c  d", Summary: "e:"}, "model: \"a: b\"\ntitle: \"c  d\"\nsummary: \"e:\"\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := string(tt.state.Encode()); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// FuzzParseLog reads any bytes: nothing is lost or read twice where the log is cut, and
// what was understood is understood again when it is written anew.
func FuzzParseLog(f *testing.F) {
	f.Add([]byte("{\"role\":\"user\",\"parts\":[{\"type\":\"text\",\"text\":\"x\"}]}\n{\"mark\":\"turn\",\"messages\":1}\n"), uint16(20))
	f.Add([]byte("{\"role\":\"system\"}\n{\"role\":\"user\"}\n{\"mark\":\"turn\",\"messages\":2,\"lead\":1}\n{\"mark\":\"compaction\",\"keep\":1,\"recap\":\"r\"}\n{\"mark\":\"empty\"}\n"), uint16(60))
	f.Add([]byte("{\"mark\":\"turn\",\"messages\":1,\"replaces\":7}\n\x00\n{\"role\":\"tool\"}\n{"), uint16(3))
	f.Add([]byte("{\"mark\":\"compaction\",\"keep\":9}\n{\"role\":\"assistant\",\"tool_calls\":[{\"id\":\"1\"}]}\n{\"mark\":\"turn\",\"messages\":1,\"lead\":1}\n"), uint16(0))
	f.Fuzz(func(t *testing.T, data []byte, cut uint16) {
		groups, used, _, damages := parse(data)
		for _, d := range damages {
			if d.Offset < 0 || d.Size <= 0 || d.Offset+d.Size > int64(used) {
				t.Fatalf("damage at %d of %d bytes, in %d", d.Offset, d.Size, used)
			}
		}
		var h history
		var again bytes.Buffer
		for _, g := range groups {
			h.apply(g)
			check(t, &h)
			if err := g.encode(&again); err != nil {
				t.Fatal(err)
			}
		}
		second, rest, _, damages := parse(again.Bytes())
		if rest != again.Len() || len(damages) > 0 {
			t.Fatalf("what was written cannot be read: %d of %d bytes, %v", rest, again.Len(), damages)
		}
		var g history
		for _, x := range second {
			g.apply(x)
		}
		if diff := cmp.Diff(h.live, g.live); diff != "" {
			t.Fatalf("written and read (-want +got):\n%s", diff)
		}
		// Reading in two goes is the same as in one.
		first := data[:min(int(cut), len(data))]
		head, n, _, _ := parse(first)
		tail, m, _, _ := parse(data[n:])
		if n+m != used || len(head)+len(tail) != len(groups) {
			t.Fatalf("in two goes: %d bytes and %d groups, not %d and %d", n+m, len(head)+len(tail), used, len(groups))
		}
	})
}

func check(t *testing.T, h *history) {
	t.Helper()
	want := h.counter.Messages(h.live)
	early, late := *h, *h
	for _, n := range []int{1, want / 2, want - 1, want, want + 1} {
		if got := early.atLeast(n); got != (want >= n) {
			t.Fatalf("%d tokens are at least %d: %v", want, n, got)
		}
	}
	if late.tokens() != want || h.lead < 0 || h.lead > len(h.live) {
		t.Fatalf("%d messages, lead %d, %d tokens, want %d", len(h.live), h.lead, late.tokens(), want)
	}
	h.count(want / 2) // go on with a part of it counted
}

// FuzzState writes texts into a state, which has to come back.
func FuzzState(f *testing.F) {
	for _, s := range []string{
		"", "plain", "two words", " space ", "true", "null", "~", "1", "0x1f", "1e3", "-1", ".inf", "2026-01-01", "a: b", "a:b", "a: ", "a #b", "#a", "- a", "-", "?", "!x",
		"*a", "&a", "%a", "@a", "`a", "[a]", "{a}", "a,b", "'", "\"", "\\", "line\nline", "line\n", "\nline", "line\n\nline\n", "  in\ndented", "a\n  b", "tab\there", "\tx\ny",
		"a\n \nb", "a\n---\nb", "---\na", "...\nx", "a\r\nb", "\u0085", "\u2028a\nb", "\ufeffa", "😀 ä", "\x00", "\x7f", "a\n\n", "x: |\n  y", "no", "ON", "y", "a b  c", "a ", "<<",
	} {
		f.Add(s, 0.5)
	}
	f.Add("x", math.MaxFloat64)
	f.Add("x", 1e-300)
	f.Add("x", -3.0)
	f.Fuzz(func(t *testing.T, s string, number float64) {
		if !utf8.ValidString(s) || math.IsInf(number, 0) || math.IsNaN(number) || len(s) > 1000 {
			t.Skip()
		}
		s = strings.ReplaceAll(s, "\ufffd", "")
		st := State{
			Settings: Settings{
				Settings: chat.Settings{Model: s, Sampling: chat.Sampling{Temperature: &number}, EnabledTools: &s, ContinuationPrompt: &s}, RoleName: s,
				AgentVariables: []Variable{{"a" + s, s}, {"b", "x"}}, AgentInstructions: &s,
			},
			Title: s, Summary: s, DataURLs: map[string]string{"k" + s: s, "l": "x"}, Created: time.Unix(1_800_000_000, 0).UTC(),
		}
		got, err := DecodeState("state.yaml", st.Encode())
		if err != nil {
			t.Fatalf("%v\n%s", err, st.Encode())
		}
		if diff := cmp.Diff(st, got); diff != "" {
			t.Fatalf("(-want +got):\n%s\n%s", diff, st.Encode())
		}
	})
}

func TestExportIsYAML(t *testing.T) {
	s := New("", "x", nil, Options{}, State{Settings: Settings{Settings: chat.Settings{Model: "m"}}, Alias: "a"})
	s.Set(func(st *Settings) { st.SaveSession = new(false) })
	texts := []string{"", "- a", "a\nb\n", "  x\ny", "# no", "key: value", "\"", "😀", "\x1b[1m"}
	for _, text := range texts {
		turn := Turn{User: chat.Text(chat.User, text), Reply: []chat.Message{{
			Role: chat.Assistant, Parts: []chat.Part{{Type: chat.TextPart, Text: text}, {Type: chat.TextPart, Text: text}},
			ToolCalls: []chat.ToolCall{{ID: text, Name: text, Arguments: text}},
		}}}
		if err := s.Append(t.Context(), turn); err != nil {
			t.Fatal(err)
		}
	}
	doc, err := yamldoc.Parse("export", []byte(s.Export(Facts{Path: "/a b/#c"})))
	if err != nil {
		t.Fatal(err)
	}
	list := doc.Root().Map().List("messages")
	if len(list) != 2*len(texts) {
		t.Fatalf("%d messages", len(list))
	}
	for i, text := range texts {
		var content, id string
		list[2*i].Map().Text("content", &content)
		list[2*i+1].Map().List("tool_calls")[0].Map().Text("id", &id)
		if content != text || id != text {
			t.Errorf("%q was exported as %q and %q", text, content, id)
		}
	}
	if doc.Err() != nil {
		t.Error(doc.Err())
	}
}

// TestNothingIsCountedUnasked: counting loads an encoding and takes long for a long
// conversation, so reading and adding turns must not do it.
func TestNothingIsCountedUnasked(t *testing.T) {
	s := NewTemp("", "x", nil, Options{}, Settings{})
	for range 10 {
		if err := s.Append(t.Context(), Turn{User: chat.Text(chat.User, "12345678"), Reply: []chat.Message{chat.Text(chat.Assistant, "1234")}}); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(s.view.history.sizes); n != 0 {
		t.Errorf("%d messages were counted", n)
	}
	if !s.NeedsCompression(5) || len(s.view.history.sizes) != 3 {
		t.Errorf("%d messages were counted to find five tokens", len(s.view.history.sizes))
	}
	if got, want := s.Tokens(), 10*3+5*19; got != want {
		t.Errorf("%d tokens, want %d", got, want)
	}
}

func TestLegalAlias(t *testing.T) {
	long := strings.Repeat("ä", 150)
	for name, want := range map[string]Alias{
		"garden": "garden", "my:chat": "my-chat", `a/b\c"d`: "a-b-c-d", ".hidden": "hidden", "end..": "end", " x ": "x", "con": "session-con",
		"": "session", "..": "session", "temp": "session-temp", "0198c2a4-0000-7000-8000-000000000000": "session-0198c2a4-0000-7000-8000-000000000000",
		"\xff": "-", "a\nb": "a-b", "a\u2028b\ufffe": "a-b-", long: Alias(long[:192]),
	} {
		if got := LegalAlias(name); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}

func FuzzLegalAlias(f *testing.F) {
	for _, name := range []string{"my:chat", ".. .", "con.", "\u202e", strings.Repeat(". ", 150) + "x"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		alias := LegalAlias(name)
		if _, err := ParseAlias(string(alias)); err != nil {
			t.Errorf("%q becomes %q: %v", name, alias, err)
		}
	})
}
