package session_test

import (
	"testing"

	"loki/internal/conversation/session"
)

func TestWhole(t *testing.T) {
	const turn = `{"role":"user","content":"a"}` + "\n" + `{"mark":"turn","messages":1}` + "\n"
	for _, test := range []struct{ name, log, want string }{
		{"nothing", "", ""},
		{"whole", turn + turn, turn + turn},
		{"a line is torn", turn + `{"role":"us`, turn},
		{"the mark is missing", turn + `{"role":"user","content":"b"}` + "\n", turn},
		{"damage inside stays", "?\n" + turn, "?\n" + turn},
	} {
		if got := string(session.Whole([]byte(test.log))); got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}
