package run

import (
	"strings"
	"testing"

	"loki/internal/base/fault"
)

func TestNewID(t *testing.T) {
	seen := make(map[string]bool)
	used := make(map[rune]bool)
	for range 1000 {
		id := NewID()
		if len(id) != IDLength || strings.Trim(id, idAlphabet) != "" {
			t.Fatalf("id %q", id)
		}
		if seen[id] {
			t.Fatalf("id %q came twice in 1,000", id)
		}
		seen[id] = true
		for _, c := range id {
			used[c] = true
		}
	}
	if len(used) != len(idAlphabet) {
		t.Errorf("%d of the %d characters are used", len(used), len(idAlphabet))
	}
}

func TestParseID(t *testing.T) {
	for _, tt := range []struct {
		typed, want string
		code        fault.Code
	}{
		{typed: "7q", want: "7q"},
		{typed: "7QAB01zz", want: "7qab01zz"},
		{typed: "oOiIlL", want: "001111"},
		{typed: "", code: fault.Usage},
		{typed: "u", code: fault.NotFound},
		{typed: "7q%", code: fault.NotFound},
		{typed: "123456789", code: fault.NotFound},
	} {
		got, err := ParseID(tt.typed)
		if got != tt.want || fault.CodeOf(err) != tt.code {
			t.Errorf("ParseID(%q) = %q, %v", tt.typed, got, err)
		}
	}
}

func TestPickID(t *testing.T) {
	if id, err := PickID("7", []string{"7a"}); id != "7a" || err != nil {
		t.Errorf("one: %q, %v", id, err)
	}
	if _, err := PickID("7", nil); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("none: %v", err)
	}
	_, err := PickID("7", []string{"7b", "7a"})
	if fault.CodeOf(err) != fault.Usage || !strings.Contains(err.Error(), "7a, 7b") {
		t.Errorf("several: %v", err)
	}
	ids := strings.Fields("7k 7j 7h 7g 7f 7e 7d 7c 7b 7a")
	for want, ids := range map[string][]string{"7a, 7b, 7c, 7d, 7e, 7f, 7g, 7h, 7j, 7k": ids, "7a, 7b, 7c, 7d, 7e, 7f, 7g, 7h, 7j, 7k, ...": append(ids, "7m")} {
		if _, err := PickID("7", ids); err == nil || !strings.HasSuffix(err.Error(), ": "+want) {
			t.Errorf("%d ids: %v", len(ids), err)
		}
	}
}
