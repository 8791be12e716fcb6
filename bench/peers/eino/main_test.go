package main

import (
	"strings"
	"testing"
)

// TestCases runs every case once: each checks its result.
func TestCases(t *testing.T) {
	for name := range makers(t.Context()) {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			if err := serve(t.Context(), strings.NewReader(name+" 1\n"), &out); err != nil {
				t.Fatal(err)
			}
			if lines := strings.Split(strings.TrimSpace(out.String()), "\n"); len(lines) != 2 || lines[1] == "-" {
				t.Errorf("got %q, want a line about the engine and a number", lines)
			}
		})
	}
}
