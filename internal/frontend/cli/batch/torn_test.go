package batch

import (
	"os"
	"path/filepath"
	"testing"
)

func TestNothingGoesBehindALineThatFailed(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "answers.jsonl")
	a, err := Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	good := a.file
	defer good.Close()
	if a.file, err = os.Open(path); err != nil { // not to be written to
		t.Fatal(err)
	}
	defer a.Close()
	if err := a.Append(Record{Key: "a"}); err == nil {
		t.Fatal("written")
	}
	a.file.Close()
	a.file = good
	if err := a.Append(Record{Key: "b"}); err == nil || a.Has("b") {
		t.Error("the next line was written all the same")
	}
	if data, err := os.ReadFile(path); err != nil || len(data) > 0 {
		t.Errorf("%q, %v", data, err)
	}
}
