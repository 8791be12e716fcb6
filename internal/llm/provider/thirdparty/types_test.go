package thirdparty_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"loki/internal/llm/provider"
)

func wantUnavailable(t *testing.T, name string, err error) {
	t.Helper()
	if e, ok := errors.AsType[*provider.Error](err); !ok || e.Status != http.StatusServiceUnavailable {
		t.Errorf("%s: error %v, want the server's 503", name, err)
	}
}

// TestRequestsHaveTheTypesOfTheOfficialSDKs compiles a program that gives each request
// that we send the type that the official SDK has for it. Members that the type does
// not know are errors of the compiler, too.
func TestRequestsHaveTheTypesOfTheOfficialSDKs(t *testing.T) {
	w := newWorkshop(t)
	var all []sent
	for _, a := range apis() {
		all = append(all, a.requests(t)...)
		all = append(all, a.searches(t)...)
	}
	all = append(all, kept(t)...)
	program, lines := typedProgram(t, all)
	if err := os.WriteFile(filepath.Join(w.dir, "bodies.ts"), program, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, complaint := range w.compile(t) {
		place, what, _ := strings.Cut(complaint, ": ")
		line := lineOf(place)
		if line < 0 || line >= len(lines) {
			t.Errorf("tsc: %s", complaint)
			continue
		}
		t.Errorf("%s: %s\n%s", lines[line].name, what, lines[line].body)
	}
	t.Logf("%d requests", len(all))
}

// typedProgram returns the program, and for each of its lines, counted from 0, the
// request that stands there. A request in which a member is misspelt follows on the
// requests of each type: the compiler has to reject it, or else the type is worth
// nothing.
func typedProgram(t *testing.T, all []sent) ([]byte, []sent) {
	t.Helper()
	var program bytes.Buffer
	var lines []sent
	write := func(s sent, line string) {
		program.WriteString(line + "\n")
		lines = append(lines, s)
	}
	write(sent{name: "imports"}, `import type * as wire from "./wire.ts";`)
	var spoilt []string
	for _, s := range all {
		s.body = withoutExtensions(t, s)
		var one bytes.Buffer
		if err := json.Compact(&one, s.body); err != nil {
			t.Fatalf("%s: %v\n%s", s.name, err, s.body)
		}
		write(s, fmt.Sprintf("export const body%d = %s satisfies wire.%s;", len(lines), &one, s.typ))
		if slices.Contains(spoilt, s.typ) {
			continue
		}
		spoilt = append(spoilt, s.typ)
		bad := sent{name: "a misspelt member of " + s.typ, body: slices.Concat([]byte(`{"mesages":[],`), one.Bytes()[1:]), typ: s.typ}
		write(bad, "// @ts-expect-error")
		write(bad, fmt.Sprintf("export const body%d = %s satisfies wire.%s;", len(lines), bad.body, s.typ))
	}
	return program.Bytes(), lines
}

// withoutExtensions returns the body of s without what we send beyond the official
// types, because servers that speak the same format ask for it.
func withoutExtensions(t *testing.T, s sent) []byte {
	t.Helper()
	if s.typ != "OpenAIChat" {
		return s.body
	}
	// The reasoning of DeepSeek and others goes back to them under one of these names.
	// Servers that reject it get the conversation without.
	names := []string{"reasoning_content", "reasoning"}
	var members map[string]json.RawMessage
	var messages []map[string]json.RawMessage
	if err := json.Unmarshal(s.body, &members); err != nil {
		t.Fatalf("%s: %v", s.name, err)
	}
	if err := json.Unmarshal(members["messages"], &messages); err != nil {
		t.Fatalf("%s: %v", s.name, err)
	}
	for _, m := range messages {
		for _, name := range names {
			delete(m, name)
		}
	}
	var err error
	if members["messages"], err = json.Marshal(messages); err != nil {
		t.Fatalf("%s: %v", s.name, err)
	}
	body, err := json.Marshal(members)
	if err != nil {
		t.Fatalf("%s: %v", s.name, err)
	}
	return body
}

// compile returns what the compiler complains of, one complaint each, with the lines
// that explain it.
func (w workshop) compile(t *testing.T) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), runTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, w.node, filepath.Join(w.modules, "typescript", "bin", "tsc"), "--project", w.dir, "--pretty", "false")
	cmd.Dir, cmd.Env, cmd.WaitDelay = w.dir, environ(), stopTime
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && (!errors.As(err, &exit) || len(bytes.TrimSpace(out)) == 0) {
		t.Fatalf("tsc: %v\n%s", err, out)
	}
	var complaints []string
	for line := range strings.Lines(string(out)) {
		if n := len(complaints); n > 0 && strings.HasPrefix(line, " ") {
			complaints[n-1] += line
			continue
		}
		complaints = append(complaints, line)
	}
	return complaints
}

// lineOf returns the line, counted from 0, of a place like "bodies.ts(12,3)"; -1 for
// places elsewhere.
func lineOf(place string) int {
	rest, ok := strings.CutPrefix(place, "bodies.ts(")
	number, _, _ := strings.Cut(rest, ",")
	n, err := strconv.Atoi(number)
	if !ok || err != nil {
		return -1
	}
	return n - 1
}

// kept returns the requests in the directory that LOKI_WIRE_OUT names.
func kept(t *testing.T) []sent {
	t.Helper()
	dir := os.Getenv("LOKI_WIRE_OUT")
	if dir == "" {
		return nil
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	var all []sent
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var record struct {
			URL  string
			Body json.RawMessage
		}
		if err := json.Unmarshal(data, &record); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if typ := typeOf(record.URL); typ != "" && strings.HasPrefix(string(record.Body), "{") {
			all = append(all, sent{name: filepath.Base(file), body: record.Body, typ: typ})
		}
	}
	return all
}

// typeOf returns the type in wire.ts of a request to url, empty if there is none. There
// is none for /v1/embeddings, where Jina and Voyage AI have members of their own.
func typeOf(url string) string {
	url, _, _ = strings.Cut(url, "?")
	for _, ending := range []struct{ path, typ string }{
		{"/chat/completions", "OpenAIChat"},
		{"/responses", "OpenAIResponses"},
		{"/v1/messages", "Anthropic"},
		{":rawPredict", "AnthropicOnVertex"},
		{":streamRawPredict", "AnthropicOnVertex"},
		{":generateContent", "Gemini"},
		{":streamGenerateContent", "Gemini"},
		{"/converse", "Converse"},
		{"/converse-stream", "Converse"},
		{"/v2/chat", "Cohere"},
		{"/v2/embed", "CohereEmbedding"},
		{"/v2/rerank", "CohereRerank"},
	} {
		if strings.HasSuffix(url, ending.path) {
			return ending.typ
		}
	}
	return ""
}
