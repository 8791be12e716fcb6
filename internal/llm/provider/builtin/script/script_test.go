package script

import (
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"loki/internal/llm/chat"
	"loki/internal/llm/provider"
)

// whole uses every key that a rule file knows.
const whole = `
rules:
  - match:
      text: weather
      regex: '(?i)weather in (?P<city>\w+)'
      system: "You are a"
      node: [ask, plan]
      turn: 1
    times: 2
    reasoning: The user wants ${city}.
    reply: |
      Let me look at $1 for {{ text }}.
    tool_calls:
      - name: weather
        id: w1
        arguments:
          city: $1
          days: 3
          precise: 1.50
          units: [metric, "{{text}}", null, true]
          empty: ""
      - name: raw
        arguments: '{"broken": $1'
      - name: bare
    chunk: 5
    delay: 2s
    chunk_delay: 10ms
    usage: {input_tokens: 10, cached_input_tokens: 4, output_tokens: 5, reasoning_tokens: 1}
    stop: other
  - match: {tool_result: sunny}
    reply: "It said: {{tool_result}}."
  - match: {node: solo}
    reply: 42
  - match: {text: fail}
    reply: some words
    error: {kind: rate_limited, status: 429, message: slow down, retry_after: 3s, after_chunks: 1}
default:
  reply: I do not know $1 or {{other}}.
`

func mustParse(t testing.TB, s string) *File {
	t.Helper()
	f, err := Parse("rules.yaml", []byte(s))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func ask(t *testing.T, f *File, q Query) Answer {
	t.Helper()
	a, err := f.Answer(q)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestAnswerIsFilledIn(t *testing.T) {
	f := mustParse(t, whole)
	got := ask(t, f, Query{Text: `weather in Rome <"$1">`, System: "You are a bot.", Node: "plan", Turn: 1})
	number := func(n int) *int { return &n }
	want := Answer{
		Reasoning: "The user wants Rome.",
		Text:      "Let me look at Rome for weather in Rome <\"$1\">.\n",
		Calls: []chat.ToolCall{
			{ID: "w1", Name: "weather", Arguments: `{"city":"Rome","days":3,"precise":1.5,"units":["metric","weather in Rome <\"$1\">",null,true],"empty":""}`},
			{Name: "raw", Arguments: `{"broken": $1`},
			{Name: "bare", Arguments: "{}"},
		},
		Chunk:      5,
		Delay:      2 * time.Second,
		ChunkDelay: 10 * time.Millisecond,
		Usage:      Usage{Input: number(10), CachedInput: number(4), Output: number(5), Reasoning: number(1)},
		Stop:       chat.StopOther,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestFailure(t *testing.T) {
	got := ask(t, mustParse(t, whole), Query{Text: "fail now"})
	want := Failure{
		Err:         provider.Error{Kind: provider.RateLimited, Status: 429, Msg: "slow down", RetryAfter: 3 * time.Second},
		AfterChunks: 1,
	}
	if got.Fail == nil || *got.Fail != want || got.Text != "some words" {
		t.Errorf("got %+v with %+v, want %+v", got, got.Fail, want)
	}
	got = ask(t, mustParse(t, "default: {error: {kind: refused}}"), Query{})
	if got.Fail == nil || got.Fail.Err.Kind != provider.Refused || got.Fail.Err.Msg == "" {
		t.Errorf("got %+v, want a refusal with a message", got.Fail)
	}
}

func TestConditions(t *testing.T) {
	full := Query{Text: "a long way", System: "be short", ToolResult: "12 km", Node: "n1", Turn: 2}
	for _, tt := range []struct {
		name, match string
		query       Query
		want        bool
	}{
		{name: "text", match: "{text: long}", query: full, want: true},
		{name: "text_case", match: "{text: Long}", query: full},
		{name: "regex", match: "{regex: '^a .* way$'}", query: full, want: true},
		{name: "regex_other", match: "{regex: '^way'}", query: full},
		{name: "result_regex", match: "{result_regex: '^\\d+ km$'}", query: full, want: true},
		{name: "result_regex_other", match: "{result_regex: way}", query: full},
		{name: "system", match: "{system: short}", query: full, want: true},
		{name: "system_other", match: "{system: long}", query: full},
		{name: "tool_result", match: "{tool_result: km}", query: full, want: true},
		{name: "tool_result_other", match: "{tool_result: miles}", query: full},
		{name: "node", match: "{node: n1}", query: full, want: true},
		{name: "node_part", match: "{node: n}", query: full},
		{name: "node_list", match: "{node: [n0, n1]}", query: full, want: true},
		{name: "node_list_other", match: "{node: [n0, n2]}", query: full},
		{name: "node_outside_graph", match: "{node: n1}", query: Query{Text: "a long way"}},
		{name: "turn", match: "{turn: 2}", query: full, want: true},
		{name: "turn_other", match: "{turn: 1}", query: full},
		{name: "all", match: "{text: long, regex: way, system: be, tool_result: '12', node: n1, turn: 2}", query: full, want: true},
		{name: "all_but_one", match: "{text: long, regex: way, system: be, tool_result: '13', node: n1, turn: 2}", query: full},
		{name: "number_as_text", match: "{tool_result: 12}", query: full, want: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := mustParse(t, "rules:\n  - match: "+tt.match+"\n    reply: \"yes\"\ndefault: {reply: \"no\"}\n")
			if got := ask(t, f, tt.query).Text == "yes"; got != tt.want {
				t.Errorf("applies = %v, want %v", got, tt.want)
			}
		})
	}
}

func TestTemplates(t *testing.T) {
	for _, tt := range []struct{ name, regex, reply, want string }{
		{name: "plain", reply: "hi", want: "hi"},
		{name: "empty", reply: "", want: ""},
		{name: "text", reply: "<{{text}}|{{ text }}>", want: "<Ann 7|Ann 7>"},
		{name: "tool_result", reply: "{{tool_result}}!", want: "{{text}} $1!"},
		{name: "unknown_place", reply: "{{name}} {{text", want: "{{name}} {{text"},
		{name: "dollar_without_regex", reply: "$1 ${x} $$", want: "$1 ${x} $$"},
		{name: "groups", regex: `(\w+) (?P<n>\d)`, reply: "$2, $1, ${n}, ${1}0, $0", want: "7, Ann, 7, Ann0, Ann 7"},
		{name: "group_that_did_not_match", regex: `(Bob)?Ann`, reply: "[$1]", want: "[]"},
		{name: "dollar_with_regex", regex: "Ann", reply: "$$1 costs $ 5, $", want: "$1 costs $ 5, $"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			match := ""
			if tt.regex != "" {
				match = "match: {regex: '" + tt.regex + "'}\n    "
			}
			f := mustParse(t, "rules:\n  - "+match+"reply: '"+tt.reply+"'\n")
			if got := ask(t, f, Query{Text: "Ann 7", ToolResult: "{{text}} $1"}).Text; got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestTimes(t *testing.T) {
	f := mustParse(t, `
rules:
  - {match: {text: a}, times: 1, reply: first}
  - {times: 2, reply: second}
  - {match: {text: b}, reply: third}
`)
	var got []string
	for _, text := range []string{"a", "a", "b", "b", "b"} {
		got = append(got, ask(t, f, Query{Text: text}).Text)
	}
	if want := []string{"first", "second", "second", "third", "third"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	_, err := f.Answer(Query{Text: "a" + strings.Repeat("é", 200), Node: "n", Turn: 3, ToolResult: "r"})
	want := "rule file rules.yaml: no rule applies to text \"a" + strings.Repeat("é", 119) + "…\", tool result \"r\", node \"n\", turn 3" +
		": the rule of line 3 has answered 1 of 1 times, the rule of line 4 has answered 2 of 2 times"
	if err == nil || err.Error() != want {
		t.Errorf("error = %v\nwant    %s", err, want)
	}
}

// A rule answers exactly as often as it may, however many ask at once.
func TestTimesAreCountedTogether(t *testing.T) {
	f := mustParse(t, "rules:\n  - {times: 10, reply: counted}\ndefault: {reply: other}\n")
	var wg sync.WaitGroup
	replies := make([]string, 40) // goroutine i writes replies[i] only
	for i := range replies {
		wg.Go(func() {
			a, err := f.Answer(Query{})
			if err != nil {
				t.Error(err)
			}
			replies[i] = a.Text
		})
	}
	wg.Wait()
	n := 0
	for _, r := range replies {
		if r == "counted" {
			n++
		}
	}
	if n != 10 {
		t.Errorf("the rule answered %d times, want 10", n)
	}
}

func TestAliases(t *testing.T) {
	f := mustParse(t, `
rules:
  - match: &who {text: Ann}
    tool_calls: &calls
      - {name: greet, arguments: &args {to: Ann}}
  - match: {text: Bob}
    tool_calls:
      - {name: greet, arguments: *args}
  - match: {node: x}
    tool_calls: *calls
`)
	for _, q := range []Query{{Text: "Ann"}, {Text: "Bob"}, {Node: "x"}} {
		a := ask(t, f, q)
		if len(a.Calls) != 1 || a.Calls[0].Arguments != `{"to":"Ann"}` {
			t.Errorf("%+v: calls %+v", q, a.Calls)
		}
	}
}

func TestNewQuery(t *testing.T) {
	result := func(text string) chat.Message {
		m := chat.Text(chat.ToolRole, text)
		m.ToolCallID = "c"
		return m
	}
	for _, tt := range []struct {
		name     string
		messages []chat.Message
		want     Query
	}{
		{name: "nothing"},
		{
			name:     "last_user_message",
			messages: []chat.Message{chat.Text(chat.System, "s"), chat.Text(chat.User, "one"), chat.Text(chat.Assistant, "x"), chat.Text(chat.User, "two")},
			want:     Query{System: "s", Text: "two"},
		},
		{
			name:     "results_of_the_latest_calls",
			messages: []chat.Message{chat.Text(chat.User, "one"), {Role: chat.Assistant}, result("old"), {Role: chat.Assistant}, result("a"), result("b")},
			want:     Query{Text: "one", ToolResult: "a\nb"},
		},
		{
			name:     "results_that_were_answered",
			messages: []chat.Message{chat.Text(chat.User, "one"), {Role: chat.Assistant}, result("old"), chat.Text(chat.Assistant, "so"), chat.Text(chat.User, "two")},
			want:     Query{Text: "two"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			req := provider.Request{Messages: tt.messages, Origin: provider.Origin{Node: "n", Turn: 4}}
			tt.want.Node, tt.want.Turn = "n", 4
			if got := NewQuery(req); got != tt.want {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
}
