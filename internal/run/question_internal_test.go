package run

import "testing"

func TestShortKey(t *testing.T) {
	for key, want := range map[string]string{
		"tool/1/2/consent/answer/1":                     "1.2",
		"tool/1/2/consent/answer/2":                     "1.2/2",
		"tool/12/3/uncertain/answer/1":                  "12.3/again",
		"tool/12/3/uncertain/answer/2":                  "12.3/again/2",
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
