package script

import (
	"slices"
	"strings"
	"testing"

	"loki/internal/base/value/yamldoc"
)

func TestParseMistakes(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{name: "empty", in: "", want: "t.yaml:1:1: expected a mapping with rules, default or both"},
		{name: "comment_only", in: "# nothing\n", want: "t.yaml:1:1: expected a mapping with rules, default or both"},
		{name: "no_mapping", in: "- reply: a\n", want: "t.yaml:1:1: expected a mapping, found a list"},
		{name: "no_rules", in: "rules:\n", want: "t.yaml:1:1: rules: the value is missing"},
		{name: "empty_rules", in: "rules: []\n", want: "t.yaml:1:8: rules: the list is empty"},
		{name: "empty_mapping", in: "{}\n", want: "t.yaml:1:1: expected a mapping with rules, default or both"},
		{name: "two_documents", in: "default: {reply: a}\n---\ndefault: {reply: b}\n", want: "t.yaml:2:1: a second document begins here, only one is allowed"},
		{name: "syntax", in: "rules:\n  - reply: [a\n", want: "t.yaml:2:12: sequence end token ']' not found"},
		{name: "key_twice", in: "default:\n  reply: a\n  reply: b\n", want: "t.yaml:3:3: default.reply: key \"reply\" occurs twice, first in line 2"},
		{name: "key_twice_in_quotes", in: "default:\n  reply: a\n  \"reply\": b\n", want: "t.yaml:3:3: default.reply: key \"reply\" occurs twice, first in line 2"},
		{name: "unknown_top_key", in: "rule:\n  - reply: a\n", want: "t.yaml:1:1: rule: unknown key; did you mean \"rules\"?"},
		{name: "unknown_rule_key", in: "rules:\n  - match: {text: a}\n    replay: b\n", want: "t.yaml:3:5: rules[0].replay: unknown key; did you mean \"reply\"?"},
		{name: "unknown_condition", in: "rules:\n  - match: {txt: a}\n    reply: b\n", want: "t.yaml:2:13: rules[0].match.txt: unknown key; did you mean \"text\"?"},
		{name: "unknown_call_key", in: "default:\n  tool_calls:\n    - name: a\n      args: {}\n", want: "t.yaml:4:7: default.tool_calls[0].args: unknown key"},
		{name: "merge_key", in: "default:\n  <<: {reply: a}\n", want: "t.yaml:2:3: default.<<: unknown key; merge keys are not applied; repeat the keys, or use an alias for a whole value"},
		{name: "match_in_default", in: "default:\n  match: {text: a}\n  reply: b\n", want: "t.yaml:2:3: default.match: unknown key"},
		{name: "times_in_default", in: "default:\n  times: 1\n  reply: b\n", want: "t.yaml:2:3: default.times: unknown key"},
		{name: "no_answer", in: "rules:\n  - match: {text: a}\n", want: "t.yaml:2:5: rules[0]: there is no answer; expected reply, reasoning, tool_calls or error"},
		{name: "empty_match", in: "rules:\n  - match: {}\n    reply: a\n", want: "t.yaml:2:12: rules[0].match: there is no condition; leave match out to match everything"},
		{name: "empty_text", in: "rules:\n  - match: {text: \"\"}\n    reply: a\n", want: "t.yaml:2:19: rules[0].match.text: the text is empty"},
		{name: "text_is_list", in: "rules:\n  - match: {text: [a]}\n    reply: a\n", want: "t.yaml:2:19: rules[0].match.text: expected a text, found a list"},
		{name: "null_reply", in: "default:\n  reply:\n", want: "t.yaml:2:3: default.reply: the value is missing"},
		{name: "regex", in: "rules:\n  - match: {regex: \"(a\"}\n    reply: a\n", want: "t.yaml:2:20: rules[0].match.regex: error parsing regexp: missing closing ): `(a`"},
		{name: "node_empty_list", in: "rules:\n  - match: {node: []}\n    reply: a\n", want: "t.yaml:2:19: rules[0].match.node: the list is empty"},
		{name: "node_in_list", in: "rules:\n  - match: {node: [a, {}]}\n    reply: a\n", want: "t.yaml:2:23: rules[0].match.node[1]: expected a text, found a mapping"},
		{name: "turn_zero", in: "rules:\n  - match: {turn: 0}\n    reply: a\n", want: "t.yaml:2:19: rules[0].match.turn: must be from 1 to 2147483647, found the number 0"},
		{name: "turn_text", in: "rules:\n  - match: {turn: one}\n    reply: a\n", want: "t.yaml:2:19: rules[0].match.turn: expected a whole number, found the string \"one\""},
		{name: "times_negative", in: "rules:\n  - times: -1\n    reply: a\n", want: "t.yaml:2:12: rules[0].times: must not be negative, found the number -1"},
		{name: "never_applies", in: "rules:\n  - reply: a\n  - reply: b\n", want: "t.yaml:3:5: rules[1]: this can never apply: the rule of line 2 answers everything"},
		{name: "default_never_applies", in: "rules:\n  - reply: a\ndefault:\n  reply: b\n", want: "t.yaml:4:3: default: this can never apply: the rule of line 2 answers everything"},
		{name: "two_regexes", in: "rules:\n  - match: {regex: a, result_regex: b}\n    reply: a\n", want: "t.yaml:2:37: rules[0].match.result_regex: a rule has either regex or result_regex"},
		{name: "no_such_group", in: "rules:\n  - match: {regex: \"(a)\"}\n    reply: costs $5\n", want: "t.yaml:3:12: rules[0].reply: the regular expression \"(a)\" has no group \"5\"; write $$ for a dollar sign"},
		{name: "no_such_group_name", in: "rules:\n  - match: {regex: \"(a)\"}\n    reasoning: ${who}\n", want: "t.yaml:3:16: rules[0].reasoning: the regular expression \"(a)\" has no group \"who\"; write $$ for a dollar sign"},
		{name: "open_group", in: "rules:\n  - match: {regex: \"(a)\"}\n    reply: ${1\n", want: "t.yaml:3:12: rules[0].reply: \"${1\" is not closed; write $$ for a dollar sign"},
		{name: "chunk", in: "default: {reply: a, chunk: 0}\n", want: "t.yaml:1:28: default.chunk: must be from 1 to 2147483647, found the number 0"},
		{name: "chunk_of_nothing", in: "default: {error: {kind: invalid}, chunk: 3}\n", want: "t.yaml:1:35: default.chunk: this means nothing without reply or reasoning"},
		{name: "chunk_delay_of_nothing", in: "default: {error: {kind: invalid}, chunk_delay: 3s}\n", want: "t.yaml:1:35: default.chunk_delay: this means nothing without reply, reasoning or tool_calls"},
		{name: "delay", in: "default: {reply: a, delay: soon}\n", want: "t.yaml:1:28: default.delay: expected a duration such as 250ms or 2s, found \"soon\""},
		{name: "delay_negative", in: "default: {reply: a, delay: -1s}\n", want: "t.yaml:1:28: default.delay: expected a duration such as 250ms or 2s, found \"-1s\""},
		{name: "stop", in: "default: {reply: a, stop: done}\n", want: "t.yaml:1:27: default.stop: expected one of stop, length, tool_calls, content_filter, other, found \"done\""},
		{name: "usage_key", in: "default: {reply: a, usage: {tokens: 1}}\n", want: "t.yaml:1:29: default.usage.tokens: unknown key"},
		{name: "usage_part", in: "default: {reply: a, usage: {cached_input_tokens: 2, input_tokens: 1}}\n", want: "t.yaml:1:29: default.usage.cached_input_tokens: this is a part of input_tokens, which must be there and not be less"},
		{name: "usage_part_alone", in: "default: {reply: a, usage: {reasoning_tokens: 2}}\n", want: "t.yaml:1:29: default.usage.reasoning_tokens: this is a part of output_tokens, which must be there and not be less"},
		{name: "no_calls", in: "default: {tool_calls: []}\n", want: "t.yaml:1:23: default.tool_calls: the list is empty"},
		{name: "call_without_name", in: "default: {tool_calls: [{arguments: {}}]}\n", want: "t.yaml:1:24: default.tool_calls[0]: the name is missing"},
		{name: "call_id_twice", in: "default: {tool_calls: [{name: a, id: x}, {name: b, id: x}]}\n", want: "t.yaml:1:42: default.tool_calls[1]: the id \"x\" is there twice"},
		{name: "arguments_list", in: "default: {tool_calls: [{name: a, arguments: [1]}]}\n", want: "t.yaml:1:45: default.tool_calls[0].arguments: expected a mapping or a string, found a list"},
		{name: "arguments_infinite", in: "default: {tool_calls: [{name: a, arguments: {n: .inf}}]}\n", want: "t.yaml:1:49: default.tool_calls[0].arguments.n: .inf cannot be expressed in JSON"},
		{name: "error_without_kind", in: "default: {error: {message: a}}\n", want: "t.yaml:1:11: default.error: the kind is missing; expected one of authentication, rate_limited, context_overflow, transient, refused, invalid, bad_reply"},
		{name: "error_kind", in: "default: {error: {kind: oops}}\n", want: "t.yaml:1:25: default.error.kind: expected one of authentication, rate_limited, context_overflow, transient, refused, invalid, bad_reply, found \"oops\""},
		{name: "error_status", in: "default: {error: {kind: invalid, status: 4040}}\n", want: "t.yaml:1:42: default.error.status: must be from 100 to 599, found the number 4040"},
		{name: "error_and_stop", in: "default: {error: {kind: invalid}, stop: stop}\n", want: "t.yaml:1:35: default.stop: this means nothing beside error"},
		{name: "error_and_usage", in: "default: {error: {kind: invalid}, usage: {}}\n", want: "t.yaml:1:35: default.usage: this means nothing beside error"},
		{name: "error_before_reply", in: "default: {reply: a, error: {kind: invalid}}\n", want: "t.yaml:1:21: default.error: this comes before the reply; set after_chunks to send some of it first"},
		{name: "error_after_nothing", in: "default: {error: {kind: invalid, after_chunks: 1}}\n", want: "t.yaml:1:11: default.error: after_chunks means nothing: there is nothing to send before the error"},
		{name: "no_anchor", in: "default: {reply: *a}\n", want: "t.yaml:1:18: default.reply: alias *a has no anchor &a before it"},
		{name: "alias_of_itself", in: "default: &a {tool_calls: [{name: x, arguments: *a}]}\n", want: "t.yaml:1:48: default.tool_calls[0].arguments: alias *a is inside its own anchor"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Parse("t.yaml", []byte(tt.in))
			if len(yamldoc.AsProblems(err)) == 0 {
				t.Fatalf("error = %v (%T), want problems", err, err)
			}
			if err.Error() != tt.want {
				t.Errorf("error = %q\nwant    %q", err, tt.want)
			}
		})
	}
}

// All mistakes of a file are found at once.
func TestParseFindsAllMistakes(t *testing.T) {
	_, err := Parse("t.yaml", []byte("rules:\n  - oops\n  - match: {regex: '('}\n    reply: $1\n    chunk: x\n  - {times: 0, reply: a}\ndefault: {replay: a}\n"))
	var got []string
	for _, p := range yamldoc.AsProblems(err) {
		got = append(got, p.Path)
	}
	if want := []string{"rules[0]", "rules[1].match.regex", "rules[1].chunk", "rules[2].times", "default.replay"}; !slices.Equal(got, want) {
		t.Errorf("mistakes in %q, want %q", got, want)
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		whole,
		"rules:\n- match: {regex: '(?P<a>b)'}\n  reply: ${a} $1 $$\n",
		"default: {tool_calls: [{name: a, arguments: &x {b: [1, 2.5, null, true, *x]}}]}",
		"default: &a\n  reply: !!str 5\n",
		"%YAML 1.2\n---\n? a\n: b\n",
		"default: {error: {kind: transient, after_chunks: 2}, reply: \"\"}",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := Parse("f.yaml", data)
		if err != nil {
			if len(yamldoc.AsProblems(err)) == 0 {
				t.Errorf("error %v is a %T", err, err)
			}
			return
		}
		// Whatever can be read can be asked, and its calls hold together.
		for range 3 {
			a, err := file.Answer(Query{Text: "abc 123", System: "s", ToolResult: "r", Node: "n", Turn: 1})
			if err != nil {
				return
			}
			for _, c := range a.Calls {
				if c.Name == "" || c.Arguments == "" && !strings.Contains(string(data), "arguments") {
					t.Errorf("call %+v", c)
				}
			}
		}
	})
}
