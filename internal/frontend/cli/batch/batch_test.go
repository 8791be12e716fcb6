package batch_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"loki/internal/base/fault"
	"loki/internal/frontend/cli/batch"
	"loki/internal/llm/chat"
)

func TestRead(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, rows, template, want string }{
		{"strings", "\"a\"\n\n \"b\" \n", "", "1:a 3:b"},
		{"prompt", `{"prompt":"a","id":7}`, "", "1:a"},
		{"template", `{"x":"a","n":3,"o":{"k":[1]}}`, "{{x}} {{ n }} {{o}}", `1:a 3 {"k":[1]}`},
		{"template_for_strings", `"a"`, "say {{prompt}}", "1:say a"},
		{"string_follows", `"a"`, "Translate:", "1:Translate:\n\na"},
		{"object_follows", `{"x":"a","n":3}`, "Judge:", "1:Judge:\n\n{\"x\":\"a\",\"n\":3}"},
		{"one_row", `{"x":1}`, "{{x}}", "1:1"},
		{"the_same_row_twice", "{\"id\":1,\"x\":1}\n{\"id\":2,\"x\":1}", "{{x}}", "1:1 2:1"},
		{"rows_are_ignored", "{\"k\":0,\"x\":1}\n{\"k\":0,\"x\":2}", "{{k}}", "error: the text makes the same prompt of all 2 lines, though they differ"},
		{"no_name", `{"x":1}`, "{{ a.b }} and {{}}", "error: {{ a.b }} in the text names no member"},
		{"not_closed", `{"x":1}`, "{{x", "error: {{x in the text names no member"},
		{"string_has_no_members", `"a"`, "say {{text}}", "error: line 1: it is a string, for which the text can name {{prompt}} only, not {{text}}"},
		{"template_is_no_prompt", `{"prompt":"a","x":"b"}`, "{{x}}", "1:b"},
		{"twice", "\"a\"\n\"a\"", "", "1:a 2:a"},
		{"no_json", "\"a\"\nb", "", "error: line 2: it is neither a JSON string nor an object"},
		{"csv", "a,b\n1,2\n", "", "error: line 1 is CSV, and --map reads JSON Lines, one object or string per line"},
		{"tabs", "\"x\"\ty\n", "", "error: line 1 is CSV, and --map reads JSON Lines, one object or string per line"},
		{"array", "[\n{}]", "", "error: line 1 is a JSON array, and --map reads JSON Lines, one object or string per line"},
		{"number", "7", "", "error: line 1: it is neither a JSON string nor an object"},
		{"no_prompt", `{"x":1}`, "", "error: line 1: the object has no member prompt"},
		{"no_member", `{"x":1}`, "{{y}} {{z}}", "error: line 1: it has no member y, z"},
		{"empty", `" "`, "", "error: line 1: the prompt is empty"},
		{"not_utf8", "\"\xff\"", "", "error: line 1: it is not text in UTF-8"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			rows, err := batch.Read(strings.NewReader(tt.rows), tt.template, "")
			var parts []string
			keys := make(map[string]bool)
			for _, r := range rows {
				parts = append(parts, fmt.Sprintf("%d:%s", r.Line, r.Prompt))
				keys[r.Key] = true
			}
			got := strings.Join(parts, " ")
			if err != nil {
				got = "error: " + err.Error()
			}
			if got != tt.want && (err == nil || !strings.HasPrefix(got, tt.want)) || len(keys) != len(rows) {
				t.Errorf("%s, %d keys", got, len(keys))
			}
		})
	}
}

func read(t *testing.T, prompts ...string) []batch.Row {
	t.Helper()
	data, err := json.Marshal(prompts)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := batch.Read(strings.NewReader(strings.ReplaceAll(strings.Trim(string(data), "[]"), ",", "\n")), "", "")
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

func open(t *testing.T, path string) *batch.Answers {
	t.Helper()
	a, err := batch.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Close() })
	return a
}

func echo(_ context.Context, row batch.Row) (batch.Record, error) {
	if strings.HasPrefix(row.Prompt, "bad") {
		return batch.Record{}, fault.New(fault.Provider, "no answer to %s", row.Prompt)
	}
	answer, err := json.Marshal("[" + row.Prompt + "]")
	return batch.Record{Answer: answer, Usage: &chat.Usage{InputTokens: 1}}, err
}

func TestABatchGoesOnWhereItStopped(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "answers.jsonl")
	none := func(batch.Progress) {}

	a := open(t, path)
	p, err := batch.Run(t.Context(), read(t, "one", "bad", "two"), a, 2, echo, none)
	if err != nil || p.Answered != 2 || p.Failed != 1 || p.Usage.InputTokens != 2 {
		t.Errorf("%+v, %v", p, err)
	}
	if _, err := batch.Open(t.Context(), path); err == nil || !strings.Contains(err.Error(), "another batch is writing to it") {
		t.Error(err)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"answer":"[one]"`, `"error":"no answer to bad","code":"provider"`, `"line":3`} {
		if !strings.Contains(string(data), want) {
			t.Errorf("%s is not in\n%s", want, data)
		}
	}

	// A killed batch leaves a piece of a line.
	if err := os.WriteFile(path, append(data, `{"line":9,"key":"x","ans`...), 0o600); err != nil {
		t.Fatal(err)
	}
	a = open(t, path)
	var asked atomic.Int32
	again := func(ctx context.Context, row batch.Row) (batch.Record, error) {
		asked.Add(1)
		return echo(ctx, batch.Row{Prompt: "now " + row.Prompt})
	}
	// Rows were added in front.
	if p, err = batch.Run(t.Context(), read(t, "three", "one", "bad", "two"), a, 4, again, none); err != nil || p.Before != 2 || p.Answered != 2 || asked.Load() != 2 {
		t.Errorf("%+v, %v, %d asked", p, err, asked.Load())
	}
	if data, err = os.ReadFile(path); err != nil || strings.Count(string(data), "\n") != 5 || strings.Contains(string(data), `"ans{`) {
		t.Errorf("%v\n%s", err, data)
	}
}

func TestCancelledRowsAreNoFailures(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "answers.jsonl")
	ctx, cancel := context.WithCancel(t.Context())
	p, err := batch.Run(ctx, read(t, "a", "b", "c", "d"), open(t, path), 2, func(ctx context.Context, row batch.Row) (batch.Record, error) {
		if row.Prompt == "a" {
			return echo(ctx, row)
		}
		cancel()
		<-ctx.Done()
		return batch.Record{}, ctx.Err()
	}, func(batch.Progress) {})
	if !errors.Is(err, context.Canceled) || p.Failed != 0 {
		t.Errorf("%+v, %v", p, err)
	}
}

func TestAForeignFileIsLeftAlone(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "notes.txt")
	if err := os.WriteFile(path, []byte("my notes\nmore"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := batch.Open(t.Context(), path); fault.CodeOf(err) != fault.Usage {
		t.Error(err)
	}
	if data, err := os.ReadFile(path); err != nil || string(data) != "my notes\nmore" {
		t.Errorf("%q, %v", data, err)
	}
}

// TestWhatIsNoFileIsNotRead: reading a pipe back would wait for ever.
func TestWhatIsNoFileIsNotRead(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	path := fmt.Sprintf("/dev/fd/%d", w.Fd())
	if _, err := os.Stat(path); err != nil {
		t.Skip("files that are open have no names here")
	}
	a, err := batch.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(a.Append(batch.Record{Line: 1, Key: "k"}), a.Close(), w.Close()); err != nil {
		t.Fatal(err)
	}
	if data, err := io.ReadAll(r); err != nil || string(data) != `{"line":1,"key":"k"}`+"\n" {
		t.Errorf("%q, %v", data, err)
	}
}

func FuzzRead(f *testing.F) {
	f.Add(`{"x":1}`, "{{x}}")
	f.Add("\"a\"\n7", "")
	f.Add(`{"prompt":"a","prompt":null}`, "{{prompt}}{{")
	f.Fuzz(func(t *testing.T, rows, template string) {
		list, err := batch.Read(strings.NewReader(rows), template, "")
		if err != nil {
			return
		}
		keys := make(map[string]bool)
		for _, r := range list {
			if strings.TrimSpace(r.Prompt) == "" || keys[r.Key] {
				t.Errorf("%+v", r)
			}
			keys[r.Key] = true
		}
	})
}
