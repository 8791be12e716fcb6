package run

import "testing"

func TestShortKey(t *testing.T) {
	for key, want := range map[string]string{
		"tool/1/2/consent/answer/1":                     "1.2",
		"tool/1/2/consent/answer/2":                     "1.2/2",
		"tool/12/3/uncertain/answer/1":                  "12.3/again",
		"tool/12/3/uncertain/answer/2":                  "12.3/again/2",
		"tool/1/2/call/answer/1":                        "1.2",
		"tool/1/2/call/question/1":                      "1.2/call",
		"uncertain/1":                                   "again",
		"uncertain/3":                                   "again/3",
		"attempt/2/tool/1/1/consent/answer/1":           "attempt/2/1.1",
		"retry/2/tool/1/1/uncertain/answer/1":           "retry/2/1.1/again",
		"retry/3/attempt/2/tool/1/1/uncertain/answer/1": "retry/3/attempt/2/1.1/again",
		"retry/2/question":                              "retry/2/question",
	} {
		if got := shortKey(key); got != want {
			t.Errorf("shortKey(%q) = %q, want %q", key, got, want)
		}
	}
}

// TestAccept has answers that are given on the command line.
func TestAccept(t *testing.T) {
	yes := "yes"
	for _, tt := range []struct {
		name     string
		p        Pending
		in, want string
		wrong    bool
	}{
		{name: "text", in: "x", want: "x"},
		{name: "option", p: Pending{Options: []string{"yes", "no"}}, in: "2", want: "no"},
		{name: "no_option", p: Pending{Options: []string{"yes", "no"}}, in: "maybe", wrong: true},
		{name: "any_number", p: Pending{Options: []string{"x", "y", "z"}, Multi: true}, in: "z, 1", want: `["z","x"]`},
		{name: "one_of_any_number", p: Pending{Options: []string{"x", "y"}, Multi: true}, in: "x", want: `["x"]`},
		{name: "list_of_any_number", p: Pending{Options: []string{"x, y", "z"}, Multi: true}, in: `["x, y"]`, want: `["x, y"]`},
		{name: "none_of_any_number", p: Pending{Options: []string{"x", "y"}, Multi: true}, in: "", want: `[]`},
		{name: "not_one_of_any_number", p: Pending{Options: []string{"x", "y"}, Multi: true}, in: "x, w", wrong: true},
		{name: "list_for_one_answer", p: Pending{Options: []string{"yes", "no"}, Open: true}, in: `["yes"]`, wrong: true},
		{name: "own_answer", p: Pending{Options: []string{"yes", "no"}, Open: true}, in: "maybe", want: "maybe"},
		{name: "default", p: Pending{Default: &yes, Rule: "len(input) > 9"}, in: "", want: "yes"},
		{name: "rule", p: Pending{Rule: "len(input) > 2"}, in: "abc", want: "abc"},
		{name: "against_the_rule", p: Pending{Rule: "len(input) > 2"}, in: "ab", wrong: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got, err := accept(tt.p, tt.in); (err != nil) != tt.wrong || err == nil && got != tt.want {
				t.Errorf("accepted as %q, %v", got, err)
			}
		})
	}
}
