package session_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"loki/internal/base/fault"
	"loki/internal/conversation/session"
	"loki/internal/conversation/session/memstore"
	"loki/internal/conversation/session/sessiontest"
	"loki/internal/llm/chat"
	"loki/internal/llm/engine/token"
)

var now = time.Date(2026, 11, 21, 9, 30, 0, 0, time.UTC)

func temp(t *testing.T, initial session.Settings, turns ...session.Turn) *session.Session {
	t.Helper()
	s := memstore.New(session.Options{Now: func() time.Time { return now }}).Temp("", initial)
	for _, turn := range turns {
		if err := s.Append(t.Context(), turn); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func user(text string) chat.Message      { return chat.Text(chat.User, text) }
func assistant(text string) chat.Message { return chat.Text(chat.Assistant, text) }

func TestParseAlias(t *testing.T) {
	for _, name := range []string{"my project", "a.b", "naïve", "日本", "a\u0301 🌱", "東京\u3000旅行", "👩\u200d🚀", "a\u00a0b", "_", "-", "COM", "COM10", "con-fusion", "20250101T120000-x"} {
		if got, err := session.ParseAlias(name); err != nil || string(got) != name {
			t.Errorf("%q: %q, %v", name, got, err)
		}
	}
	if got, err := session.ParseAlias("_/20250101T120000-x"); err != nil || got != "20250101T120000-x" {
		t.Errorf("as it used to be: %q, %v", got, err)
	}
	for _, name := range []string{
		"", "temp", ".", "..", ".hidden", "a.", " a", "a ", "../a", "a/b", `a\b`, "/etc", "_/_/a", "a\x00b", "a\nb", "a\x7f", "a\u202eb", "a\xff", "a\u2028b", "a\ufffeb", "a\ufffdb", "a\ue000b",
		"CON", "con.txt", "Aux", "nul", "com1", "LPT9.x", "com¹", "a:b", "a*", "a?", `a"b`, "a|b", "<a>", strings.Repeat("a", 201),
		"0b3f7c1e-7f7e-4f0e-9a43-0123456789AB",
	} {
		if got, err := session.ParseAlias(name); err == nil || fault.CodeOf(err) != fault.Usage {
			t.Errorf("%q is the alias %q, %v", name, got, err)
		}
	}
}

func TestParseID(t *testing.T) {
	id := session.NewID()
	if got, err := session.ParseID(strings.ToUpper(string(id))); err != nil || got != id {
		t.Errorf("%s: %s, %v", id, got, err)
	}
	if id == session.NewID() || id[14] != '4' || !strings.ContainsRune("89ab", rune(id[19])) {
		t.Errorf("no random UUID: %s", id)
	}
	for _, text := range []string{"", "x", string(id) + "0", string(id[:35]) + "g", strings.ReplaceAll(string(id), "-", "0"), "../" + string(id[3:])} {
		if _, err := session.ParseID(text); err == nil {
			t.Errorf("%q is an id", text)
		}
	}
}

func TestRequest(t *testing.T) {
	role := []chat.Message{chat.Text(chat.System, "s"), user("i"), assistant("o")}
	live := []chat.Message{chat.Text(chat.System, "s"), user("1"), {Role: chat.Assistant, ToolCalls: []chat.ToolCall{{ID: "a"}}}, {Role: chat.ToolRole, ToolCallID: "a"}, assistant("part")}
	rounds := []chat.Message{{Role: chat.Assistant, ToolCalls: []chat.ToolCall{{ID: "b"}}}, {Role: chat.ToolRole, ToolCallID: "b"}}
	join := func(lists ...[]chat.Message) []chat.Message {
		var all []chat.Message
		for _, l := range lists {
			all = append(all, l...)
		}
		return all
	}
	one := func(m chat.Message) []chat.Message { return []chat.Message{m} }
	for _, tt := range []struct {
		name string
		live []chat.Message
		in   session.Input
		want []chat.Message
	}{
		{"alone", nil, session.Input{Role: role, User: user("q")}, join(role, one(user("q")))},
		{"wrapped_in_the_prompt", nil, session.Input{User: user("q")}, one(user("q"))},
		{"alone_continue", nil, session.Input{Mode: session.Continue, Role: role, User: user("q"), Partial: "pa"}, join(role, one(user("q")), one(assistant("pa")))},
		{"alone_rounds", nil, session.Input{Role: role, User: user("q"), Rounds: rounds}, join(role, one(user("q")), rounds)},
		{"session", live, session.Input{Role: role, User: user("q")}, join(live, one(user("q")))},
		{"session_rounds", live, session.Input{Role: role, User: user("q"), Rounds: rounds}, join(live, one(user("q")), rounds)},
		{"session_continue", live, session.Input{Mode: session.Continue, Role: role, User: user("q"), Partial: "part"}, live},
		{"session_regenerate", live, session.Input{Mode: session.Regenerate, Role: role, User: user("1")}, live[:2]},
	} {
		t.Run(tt.name, func(t *testing.T) {
			before := len(tt.live)
			got := session.Request(tt.live, tt.in)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			got[0] = chat.Message{} // the list is ours
			if before > 0 && tt.live[0].Role != chat.System {
				t.Error("the list of the session was handed out")
			}
		})
	}
}

// TestContinueAndRegenerate holds what a turn does to the last one against what stays.
func TestContinueAndRegenerate(t *testing.T) {
	text := func(s string) chat.Part { return chat.Part{Type: chat.TextPart, Text: s} }
	thought := func(s string) chat.Part { return chat.Part{Type: chat.ReasoningPart, Text: s} }
	says := func(parts ...chat.Part) chat.Message { return chat.Message{Role: chat.Assistant, Parts: parts} }
	call := chat.Message{Role: chat.Assistant, Parts: []chat.Part{text("I look.")}, ToolCalls: []chat.ToolCall{{ID: "1", Name: "ls", Arguments: "{}"}}}
	result := chat.Message{Role: chat.ToolRole, ToolCallID: "1", ToolName: "ls", Parts: []chat.Part{text("x")}}
	list := func(messages ...chat.Message) []chat.Message { return messages }
	const ask, goOn, again = session.Ask, session.Continue, session.Regenerate
	for _, tt := range []struct {
		name  string
		reply []chat.Message // to the only question so far, "q"; it may be nil
		turn  session.Turn
		want  []chat.Message // live messages behind it
	}{
		{"ask", list(assistant("a")), session.Turn{Mode: ask, User: user("r"), Reply: list(assistant("b"))}, list(assistant("a"), user("r"), assistant("b"))},
		{"ask_the_same", list(assistant("a")), session.Turn{Mode: ask, User: user("q"), Reply: list(assistant("b"))}, list(assistant("a"), user("q"), assistant("b"))},
		{"again", list(assistant("a")), session.Turn{Mode: again, Reply: list(assistant("b"))}, list(assistant("b"))},
		{"again_after_a_round", list(call, result, assistant("a")), session.Turn{Mode: again, User: user("q"), Reply: list(assistant("b"))}, list(assistant("b"))},
		{"again_what_was_never_recorded", list(assistant("a")), session.Turn{Mode: again, User: user("r"), Reply: list(assistant("b"))}, list(assistant("a"), user("r"), assistant("b"))},
		{"again_without_an_answer", nil, session.Turn{Mode: again, Reply: list(assistant("b"))}, list(assistant("b"))},
		{"goes_on", list(assistant("a")), session.Turn{Mode: goOn, User: user("r"), Reply: list(assistant("b"))}, list(assistant("ab"))},
		{"goes_on_with_a_round", list(assistant("a")), session.Turn{Mode: goOn, Reply: list(call, result, assistant("b"))}, list(
			chat.Message{Role: chat.Assistant, Parts: []chat.Part{text("aI look.")}, ToolCalls: call.ToolCalls}, result, assistant("b"),
		)},
		{"goes_on_after_a_round", list(call, result, assistant("a")), session.Turn{Mode: goOn, Reply: list(assistant("b"))}, list(call, result, assistant("ab"))},
		{"goes_on_behind_a_result", list(call, result), session.Turn{Mode: goOn, Reply: list(assistant("b"))}, list(call, result, assistant("b"))},
		{"goes_on_behind_a_call", list(call), session.Turn{Mode: goOn, Reply: list(assistant("b"))}, list(call, assistant("b"))},
		{"goes_on_with_a_result", list(assistant("a")), session.Turn{Mode: goOn, Reply: list(result)}, list(assistant("a"), result)},
		{"goes_on_with_nothing", list(assistant("a")), session.Turn{Mode: goOn}, list(assistant("a"))},
		{"goes_on_from_nothing", nil, session.Turn{Mode: goOn, Reply: list(assistant("b"))}, list(assistant("b"))},
		{"thoughts_in_front", list(says(thought("hm"))), session.Turn{Mode: goOn, Reply: list(assistant("b"))}, list(says(thought("hm"), text("b")))},
		{"thoughts_behind", list(assistant("a")), session.Turn{Mode: goOn, Reply: list(says(thought("hm"), text("b")))}, list(says(text("a"), thought("hm"), text("b")))},
		{"no_parts_in_front", list(says()), session.Turn{Mode: goOn, Reply: list(assistant("b"))}, list(assistant("b"))},
		{"no_parts_behind", list(assistant("a")), session.Turn{Mode: goOn, Reply: list(says())}, list(assistant("a"))},
	} {
		for _, role := range [][]chat.Message{nil, {chat.Text(chat.System, "s"), user("i"), assistant("o")}} {
			t.Run(fmt.Sprintf("%s/%d_role_messages", tt.name, len(role)), func(t *testing.T) {
				s := temp(t, session.Settings{}, session.Turn{Role: role, User: user("q"), Reply: tt.reply}, tt.turn)
				want := append(append(append([]chat.Message(nil), role...), user("q")), tt.want...)
				if diff := cmp.Diff(want, s.Messages()); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			})
		}
	}
	for _, mode := range []session.Mode{goOn, again} {
		s := temp(t, session.Settings{}, session.Turn{Mode: mode, User: user("q"), Reply: list(assistant("a"))})
		if diff := cmp.Diff(list(user("q"), assistant("a")), s.Messages()); diff != "" {
			t.Errorf("mode %d in an empty session (-want +got):\n%s", mode, diff)
		}
	}
	if got := session.Request(list(assistant("a"), result), session.Input{Mode: again}); len(got) != 0 {
		t.Errorf("a conversation without a question is sent as %v", got)
	}
}

func TestOnlyTheFirstTurnNamesASession(t *testing.T) {
	for _, save := range []*bool{nil, new(false), new(true)} {
		s := temp(t, session.Settings{SaveSession: save}, sessiontest.Turn(1))
		if want := save != nil && *save; s.NeedsName() != want {
			t.Errorf("a session with save_session %v needs a name: %v", save, !want)
		}
	}
	s := temp(t, session.Settings{SaveSession: new(true)}, sessiontest.Turn(1), sessiontest.Turn(2))
	ask := func(_ context.Context, text string) (string, chat.Usage, error) {
		if text != "USER: question 1\nASSISTANT: answer 1" {
			t.Errorf("the title is made of %q", text)
		}
		return "first things", chat.Usage{}, nil
	}
	if err := s.AutoName(t.Context(), ask); err != nil || s.Title() != "first-things" || s.NeedsName() {
		t.Errorf("the title is %q, %v; it needs a name: %v", s.Title(), err, s.NeedsName())
	}
	if alias := s.Alias(); !alias.AutoSaved() || !strings.HasSuffix(string(alias), "-first-things") {
		t.Errorf("the alias is %q", alias)
	}
}

// TestSourcesOfImagesAreStored along with the turn that has the images.
func TestSourcesOfImagesAreStored(t *testing.T) {
	s := temp(t, session.Settings{SaveSession: new(true)})
	want := map[string]string{}
	for _, file := range []string{"a.png", "b.png"} {
		want[session.DataURLHash(file)] = file
		if err := s.Append(t.Context(), session.Turn{User: user("look"), DataURLs: map[string]string{session.DataURLHash(file): file}}); err != nil {
			t.Fatal(err)
		}
		if err := s.Reload(t.Context()); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, s.DataURLs()); diff != "" {
			t.Errorf("stored (-want +got):\n%s", diff)
		}
	}
	if err := s.Clear(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.Reload(t.Context()); err != nil || len(s.DataURLs()) > 0 {
		t.Errorf("still stored after clearing: %v, %v", s.DataURLs(), err)
	}
}

func TestVerdict(t *testing.T) {
	yes, no := new(true), new(false)
	for _, tt := range []struct {
		name                            string
		save                            *bool
		named, attended, force, changed bool
		want                            session.Verdict
	}{
		{"clean", yes, true, false, true, false, session.Discard},
		{"false", no, true, false, false, true, session.Discard},
		{"false_forced", no, true, false, true, true, session.Write},
		{"true_named", yes, true, true, false, true, session.Write},
		{"true_temporary", yes, false, true, false, true, session.Write},
		{"unset_one_shot", nil, true, false, false, true, session.Write},
		{"unset_one_shot_temporary", nil, false, false, false, true, session.Discard},
		{"unset_one_shot_temporary_forced", nil, false, false, true, true, session.Write},
		{"unset_attended", nil, true, true, false, true, session.Write},
		{"unset_attended_temporary", nil, false, true, false, true, session.Query},
	} {
		t.Run(tt.name, func(t *testing.T) {
			st := memstore.New(session.Options{})
			s := st.Temp("", session.Settings{SaveSession: tt.save})
			if tt.named {
				s, _ = st.OpenOrCreate(t.Context(), "", "a", func() (session.Settings, error) { return session.Settings{SaveSession: tt.save}, nil })
			}
			s.Attend(tt.attended)
			if tt.force {
				s.ForceSave()
			}
			if tt.changed {
				s.Set(func(st *session.Settings) { st.Model = "m" })
			}
			if got := s.Verdict(); got != tt.want {
				t.Errorf("got %d, want %d", got, tt.want)
			}
		})
	}
}

func TestSlug(t *testing.T) {
	for _, tt := range []struct{ reply, want string }{
		{" garden-plans \n", "garden-plans"},
		{"<think>hm</think>\n**Garden plans!**", "Garden-plans"},
		{"a, b", "a--b"},
		{"नमस्ते दुनिया 2", "नमस्ते-दुनिया-2"},
		{"../..", ""},
		{"", ""},
		{strings.Repeat("ab", 40), strings.Repeat("ab", 30)},
		{strings.Repeat("日", 60), strings.Repeat("日", 50)},
		{strings.Repeat("a", 59) + "-b", strings.Repeat("a", 59)},
	} {
		got := session.Slug(tt.reply)
		if got != tt.want {
			t.Errorf("%q: %q, want %q", tt.reply, got, tt.want)
		}
		if _, err := session.ParseAlias("20250101T120000-" + got); err != nil && got != "" {
			t.Errorf("%q: %v", tt.reply, err)
		}
	}
}

// TestTokensAreCountedAsTheyCome compares the running count with a new one.
func TestTokensAreCountedAsTheyCome(t *testing.T) {
	s := temp(t, session.Settings{})
	check := func(what string) {
		t.Helper()
		if got, want := s.Tokens(), token.Estimate().Messages(s.Messages()); got != want {
			t.Errorf("%s: %d tokens, want %d", what, got, want)
		}
	}
	check("empty")
	add := func(turn session.Turn) {
		t.Helper()
		if err := s.Append(t.Context(), turn); err != nil {
			t.Fatal(err)
		}
	}
	add(sessiontest.Turn(1))
	check("one turn")
	add(session.Turn{User: user("now think"), Reply: []chat.Message{assistant("<think>" + strings.Repeat("deep ", 100) + "</think>done")}})
	check("thoughts that are the last message")
	add(sessiontest.Turn(2))
	check("thoughts that are not")
	add(session.Turn{Mode: session.Regenerate, Reply: []chat.Message{assistant("ä")}})
	check("replaced")
	add(session.Turn{User: user("?")})
	check("a question without an answer")
	if _, err := s.Compress(t.Context(), session.Compaction{Keep: 1, Summarize: func(context.Context, []chat.Message) (string, chat.Usage, error) { return "s", chat.Usage{}, nil }}); err != nil {
		t.Fatal(err)
	}
	check("compressed")
	if err := s.Clear(t.Context()); err != nil {
		t.Fatal(err)
	}
	check("cleared")
}

func TestTokensFollowTheModel(t *testing.T) {
	st := memstore.New(session.Options{Counter: token.For})
	s := st.Temp("", session.Settings{Settings: chat.Settings{Model: "local:llama"}})
	text := strings.Repeat("antidisestablishmentarianism ", 40)
	if err := s.Append(t.Context(), session.Turn{User: user(text)}); err != nil {
		t.Fatal(err)
	}
	before := s.Tokens()
	s.Set(func(st *session.Settings) { st.Model = "openai:gpt-4o" })
	if got, want := s.Tokens(), token.For("gpt-4o").Messages(s.Messages()); got != want || got == before {
		t.Errorf("%d tokens, want %d, not %d", got, want, before)
	}
}

func TestListsStayAsTheyWere(t *testing.T) {
	s := temp(t, session.Settings{}, sessiontest.Turn(1), sessiontest.Turn(2))
	before := s.Messages()
	want := append([]chat.Message(nil), before...)
	for _, turn := range []session.Turn{
		{Mode: session.Regenerate, Reply: []chat.Message{assistant("other")}},
		{Mode: session.Continue, Reply: []chat.Message{assistant(" and more")}},
		sessiontest.Turn(3),
	} {
		if err := s.Append(t.Context(), turn); err != nil {
			t.Fatal(err)
		}
	}
	_ = append(before, user("mine"))
	if diff := cmp.Diff(want, before); diff != "" {
		t.Errorf("a list that was handed out has changed (-want +got):\n%s", diff)
	}
	if got := s.Messages(); got[len(got)-1].Text() != "answer 3" {
		t.Errorf("the last message is %q", got[len(got)-1].Text())
	}
}

func TestCompression(t *testing.T) {
	tools := session.Turn{
		User: chat.Message{Role: chat.User, Parts: []chat.Part{{Type: chat.TextPart, Text: "look"}, {Type: chat.ImagePart, URL: "https://x/y.png"}}},
		Reply: []chat.Message{
			{Role: chat.Assistant, Parts: []chat.Part{{Type: chat.ReasoningPart, Text: "secret", Signature: "s"}}, ToolCalls: []chat.ToolCall{{ID: "1", Name: "ls", Arguments: "{}"}, {ID: "2", Name: "cat", Arguments: `{"p":1}`}}},
			{Role: chat.ToolRole, ToolCallID: "1", ToolName: "ls", Parts: []chat.Part{{Type: chat.TextPart, Text: strings.Repeat("ä", 4000)}}},
			{Role: chat.ToolRole, ToolCallID: "2", ToolName: "cat", Failed: true, Parts: []chat.Part{{Type: chat.TextPart, Text: "no"}}},
			assistant("<think>hm</think>Nothing."),
		},
	}
	var asked []chat.Message
	summarize := func(_ context.Context, list []chat.Message) (string, chat.Usage, error) {
		asked = list
		return "<think>what to say</think>\nThe recap.\n", chat.Usage{InputTokens: 50, OutputTokens: 5}, nil
	}
	const system = "Be brief.\n\nRecap of the conversation so far:\nThe recap."
	for _, tt := range []struct {
		name  string
		turns []session.Turn
		c     session.Compaction
		want  []string // the live messages behind the examples
	}{
		{"default", []session.Turn{sessiontest.Turn(1), tools, sessiontest.Turn(3), sessiontest.Turn(4)}, session.Compaction{}, []string{"question 3", "answer 3", "question 4", "answer 4"}},
		{"round_is_not_split", []session.Turn{sessiontest.Turn(1), tools}, session.Compaction{Keep: 1}, []string{"look", "", strings.Repeat("ä", 4000), "no", "<think>hm</think>Nothing."}},
		{"none", []session.Turn{sessiontest.Turn(1), sessiontest.Turn(2)}, session.Compaction{Keep: -1}, nil},
		{"size_does_not_matter", []session.Turn{sessiontest.Turn(1), tools, sessiontest.Turn(3)}, session.Compaction{}, []string{"look", "", strings.Repeat("ä", 4000), "no", "<think>hm</think>Nothing.", "question 3", "answer 3"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := temp(t, session.Settings{}, tt.turns...)
			before := s.Tokens()
			tt.c.Summarize = summarize
			got, err := s.Compress(t.Context(), tt.c)
			if err != nil {
				t.Fatal(err)
			}
			list := s.Messages()
			if list[0].Text() != system || list[1].Text() != "1?" || list[2].Text() != "2." {
				t.Errorf("the conversation begins with %+v", list[:3])
			}
			var texts []string
			for _, m := range list[3:] {
				texts = append(texts, m.Text())
			}
			if diff := cmp.Diff(tt.want, texts); diff != "" {
				t.Errorf("messages that stay (-want +got):\n%s", diff)
			}
			if want := (session.Compressed{Messages: len(s.CompactedMessages()), Kept: len(texts), Before: before, After: s.Tokens(), Recap: "The recap."}); got != want {
				t.Errorf("reported %+v, want %+v", got, want)
			}
		})
	}

	t.Run("what_the_model_is_asked", func(t *testing.T) {
		s := temp(t, session.Settings{}, tools, sessiontest.Turn(2))
		if err := s.Append(t.Context(), session.Turn{User: user("last")}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Compress(t.Context(), session.Compaction{Keep: 1, Summarize: summarize, SummarizationPrompt: "Sum up!"}); err != nil {
			t.Fatal(err)
		}
		cut := strings.Repeat("ä", 1000) + "\n[... 4000 bytes left out ...]\n" + strings.Repeat("ä", 1000)
		want := []chat.Message{
			user("look\n[an image]"),
			assistant("[calls the tool ls with {}]\n[calls the tool cat with {\"p\":1}]"),
			user("[result of the tool ls]\n" + cut + "\n\n[error of the tool cat]\nno"),
			assistant("Nothing."),
			user("question 2"), assistant("answer 2"), user("Sum up!"),
		}
		if diff := cmp.Diff(want, asked); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if got := s.Messages()[0].Text(); got != "Recap of the conversation so far:\nThe recap." {
			t.Errorf("without instructions the system message is %q", got)
		}
	})

	t.Run("role_messages_that_are_examples_are_not_asked_about", func(t *testing.T) {
		s := temp(t, session.Settings{}, sessiontest.Turn(1), sessiontest.Turn(2))
		if _, err := s.Compress(t.Context(), session.Compaction{Keep: 1, Summarize: summarize, SummarizationPrompt: "Sum up!"}); err != nil {
			t.Fatal(err)
		}
		want := []chat.Message{chat.Text(chat.System, "Be brief."), user("question 1"), assistant("answer 1"), user("Sum up!")}
		if diff := cmp.Diff(want, asked); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})

	t.Run("a_result_is_cut_from_its_limit_on", func(t *testing.T) {
		for size, whole := range map[int]bool{4000: true, 4001: false} {
			result := chat.Text(chat.ToolRole, strings.Repeat("x", size))
			s := temp(t, session.Settings{}, session.Turn{User: user("q"), Reply: []chat.Message{result, assistant("a")}}, sessiontest.Turn(2))
			if _, err := s.Compress(t.Context(), session.Compaction{Keep: 1, Summarize: summarize}); err != nil {
				t.Fatal(err)
			}
			if got := asked[0].Text(); strings.Contains(got, result.Text()) != whole || strings.Contains(got, "left out") == whole {
				t.Errorf("a result of %d bytes becomes %d bytes", size, len(got))
			}
		}
	})

	t.Run("own_words", func(t *testing.T) {
		s := temp(t, session.Settings{}, sessiontest.Turn(1), sessiontest.Turn(2))
		if _, err := s.Compress(t.Context(), session.Compaction{Keep: 1, Summarize: summarize, SummaryContextPrompt: "So far: ", Todo: "1. [ ] dig\n"}); err != nil {
			t.Fatal(err)
		}
		if got, want := s.Messages()[0].Text(), "Be brief.\n\n[ACTIVE TODO LIST]\n1. [ ] dig\n\nSo far: The recap."; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})

	t.Run("failures_change_nothing", func(t *testing.T) {
		s := temp(t, session.Settings{}, sessiontest.Turn(1), sessiontest.Turn(2))
		before := s.Messages()
		sorry := errors.New("sorry")
		if _, err := s.Compress(t.Context(), session.Compaction{Keep: 1, Summarize: func(context.Context, []chat.Message) (string, chat.Usage, error) { return "", chat.Usage{}, sorry }}); !errors.Is(err, sorry) {
			t.Errorf("the error is %v", err)
		}
		if _, err := s.Compress(t.Context(), session.Compaction{Keep: 1, Summarize: func(context.Context, []chat.Message) (string, chat.Usage, error) {
			return "<think>x</think> ", chat.Usage{}, nil
		}}); fault.CodeOf(err) != fault.Provider {
			t.Errorf("an empty recap: %v", err)
		}
		_, err := s.Compress(t.Context(), session.Compaction{Keep: 1, Summarize: func(ctx context.Context, _ []chat.Message) (string, chat.Usage, error) {
			return "x", chat.Usage{}, s.Clear(ctx)
		}})
		if err == nil || !s.Empty() {
			t.Errorf("cleared meanwhile: %v, %d messages", err, len(s.Messages()))
		}
		if len(before) != 7 {
			t.Errorf("%d messages", len(before))
		}
		if _, err := s.Compress(t.Context(), session.Compaction{Summarize: summarize}); fault.CodeOf(err) != fault.Usage {
			t.Errorf("nothing to compress: %v", err)
		}
	})

	t.Run("the_last_two_turns_stay", func(t *testing.T) {
		long := session.Turn{User: user(strings.Repeat("a long file ", 10_000)), Reply: []chat.Message{assistant("Read.")}}
		for _, turns := range [][]session.Turn{{long}, {long, long}} {
			s := temp(t, session.Settings{}, turns...)
			before := s.Messages()
			if s.NeedsCompression(100) {
				t.Errorf("%d turns need compression", len(turns))
			}
			if _, err := s.Compress(t.Context(), session.Compaction{Summarize: summarize}); fault.CodeOf(err) != fault.Usage {
				t.Errorf("%d turns: %v", len(turns), err)
			}
			if diff := cmp.Diff(before, s.Messages()); diff != "" {
				t.Errorf("(-before +after):\n%s", diff)
			}
		}
	})
}

func TestNeedsCompression(t *testing.T) {
	s := temp(t, session.Settings{}, sessiontest.Turn(1), sessiontest.Turn(2), sessiontest.Turn(3))
	n := s.Tokens()
	next := user("12345678") // 2 tokens
	for _, tt := range []struct {
		threshold int
		next      []chat.Message
		want      bool
	}{
		{0, nil, false},
		{n - 1, nil, true},
		{n, nil, true},
		{n + 1, nil, false},
		{n + 2, []chat.Message{next}, true},
		{n + 3, []chat.Message{next}, false},
	} {
		if got := s.NeedsCompression(tt.threshold, tt.next...); got != tt.want {
			t.Errorf("%d tokens, threshold %d, %d messages to follow: %v", n, tt.threshold, len(tt.next), got)
		}
	}
	if temp(t, session.Settings{}).NeedsCompression(1) {
		t.Error("an empty session needs compression")
	}

	// Where the last two turns reach the threshold by themselves the others have to be worth it.
	long := session.Turn{User: user(strings.Repeat("word", 1000)), Reply: []chat.Message{assistant("Read.")}}
	short := session.Turn{User: user("short"), Reply: []chat.Message{assistant("Yes.")}}
	if temp(t, session.Settings{}, short, long, long).NeedsCompression(1000) {
		t.Error("a short turn is compressed though that helps nothing")
	}
	if !temp(t, session.Settings{}, long, long, long).NeedsCompression(1000) {
		t.Error("a long turn is not compressed")
	}
	if temp(t, session.Settings{}, long, long).NeedsCompression(1) {
		t.Error("two turns need compression though there is nothing to compress")
	}
	// A quarter of the threshold is worth it, less is not, unless it takes the session below the threshold.
	twenty := session.Turn{User: user(strings.Repeat("word", 10)), Reply: []chat.Message{assistant(strings.Repeat("word", 10))}}
	s = temp(t, session.Settings{}, twenty, long, long)
	rest := s.Tokens() - 20
	for _, tt := range []struct {
		threshold int
		next      []chat.Message
		want      bool
	}{
		{80, nil, true},
		{84, nil, false},
		{rest, nil, false},
		{rest + 1, nil, true},
		{rest + 2, []chat.Message{next}, false},
		{rest + 3, []chat.Message{next}, true},
		{80, []chat.Message{user(strings.Repeat("word", 5000))}, true},
	} {
		if got := s.NeedsCompression(tt.threshold, tt.next...); got != tt.want {
			t.Errorf("threshold %d beside %d tokens, %d messages to follow: %v", tt.threshold, rest, len(tt.next), got)
		}
	}
	if s := temp(t, session.Settings{}, long, long, long); !s.NeedsCompression(80, user(strings.Repeat("word", 5000))) {
		t.Error("a session is not compressed before a message that is longer than the threshold")
	}
	if s := temp(t, session.Settings{}, short, short, long); !s.NeedsCompression(s.Tokens()) {
		t.Error("a short turn is not compressed though that takes the session below its threshold")
	}
}

func TestThreshold(t *testing.T) {
	for limit, want := range map[int]int{0: 16_000, -1: 16_000, 1000: 600, 128_000: 76_800} {
		if got := session.Threshold(limit); got != want {
			t.Errorf("a model that reads %d tokens: %d, want %d", limit, got, want)
		}
	}
}

func TestDamageSaysWhatWasLost(t *testing.T) {
	cut := &session.Damage{ID: "x", Size: 12, Cut: true, Why: "the end is missing"}
	if got := fmt.Sprint(cut); !strings.Contains(got, "session x") || !strings.Contains(got, "12 bytes") {
		t.Error(got)
	}
}

// TestNamesOfOneSecond: temporary sessions that are saved in the same second are named after that second.
func TestNamesOfOneSecond(t *testing.T) {
	store := memstore.New(session.Options{Now: func() time.Time { return now }})
	var names []session.Alias
	for range 3 {
		s := store.Temp("", session.Settings{SaveSession: new(true)})
		if err := s.Append(t.Context(), session.Turn{User: user("a"), Reply: []chat.Message{assistant("b")}}); err != nil {
			t.Fatal(err)
		}
		if !s.Alias().AutoSaved() {
			t.Errorf("%s was named by a user", s.Alias())
		}
		names = append(names, s.Alias())
	}
	if names[1] != names[0]+"-2" || names[2] != names[0]+"-3" {
		t.Error(names)
	}
}

func TestKeepNothing(t *testing.T) {
	store := memstore.New(session.Options{Now: func() time.Time { return now }})
	s, err := store.Create(t.Context(), "", "trip", session.Settings{SaveSession: new(true)})
	if err != nil {
		t.Fatal(err)
	}
	s.KeepNothing()
	s.ForceSave()
	d, err := s.Begin(t.Context(), session.Turn{User: user("a")})
	if err == nil {
		err = d.Finish(t.Context(), []chat.Message{assistant("b")}, chat.Usage{})
	}
	if err != nil || len(s.Messages()) != 2 || s.Verdict() != session.Discard {
		t.Errorf("%d messages, verdict %v, %v", len(s.Messages()), s.Verdict(), err)
	}
}
