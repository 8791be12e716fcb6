package display

import (
	"errors"
	"strings"
	"testing"
)

func TestCopy(t *testing.T) {
	t.Parallel()
	var got string
	works := func(text string) error { got = text; return nil }
	fails := func(string) error { return errors.New("no display") }
	var terminal strings.Builder
	if err := copyWith(works, "a", &terminal); err != nil || got != "a" || terminal.Len() > 0 {
		t.Errorf("%v, %q, %q", err, got, terminal.String())
	}
	if err := copyWith(fails, "hi", &terminal); err != nil || terminal.String() != "\x1b]52;c;aGk=\a" {
		t.Errorf("%v, %q", err, terminal.String())
	}
	if err := copyWith(fails, "hi", nil); err == nil || !strings.Contains(err.Error(), "no display") {
		t.Error(err)
	}
	if err := copyWith(fails, strings.Repeat("x", 60_000), &terminal); err == nil {
		t.Error("a long text was sent to the terminal")
	}
}
