package render

import (
	"testing"

	"loki/internal/llm/event"
)

// TestInstructionFiles: a change names the files that have changed, and no others unless one is gone.
func TestInstructionFiles(t *testing.T) {
	file := func(path string, changed bool) event.InstructionFile {
		return event.InstructionFile{Path: path, State: "used", Changed: changed}
	}
	for want, files := range map[string][]event.InstructionFile{
		"a.md":                 {file("a.md", true), file("b.md", false)},
		"a.md, b.md":           {file("a.md", true), file("b.md", true)},
		"what is left is b.md": {file("b.md", false), {Path: "a.md", State: "untrusted", Changed: true}},
		"none is left":         {{Path: "a.md", State: "untrusted", Changed: true}},
	} {
		if got := instructionFiles(event.Instructions{Files: files, Changed: true}); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
