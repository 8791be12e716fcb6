package gemini_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"loki/internal/llm/chat"
	"loki/internal/llm/provider"
	"loki/internal/llm/provider/client"
	"loki/internal/llm/provider/gemini"
	"loki/internal/llm/provider/providertest"
	"loki/internal/llm/provider/providertest/wiretest"
	"loki/internal/llm/provider/wire"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// answer is a transport that gives every request the same body.
type answer func() io.Reader

func (a answer) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(a()), Request: r}, nil
}

func answered(t testing.TB, a answer, stream bool) string {
	t.Helper()
	h, err := wire.NewClient(wire.Options{Client: "gemini", Transport: a})
	if err != nil {
		t.Fatal(err)
	}
	c, err := gemini.New(client.Options{Name: "gemini", HTTP: h, APIKey: wiretest.Key(testKey)})
	if err != nil {
		t.Fatal(err)
	}
	question := chat.Text(chat.User, "What is it?")
	return describe(t, providertest.Collect(t, c.Chat(t.Context(), provider.Request{Model: "gemini-2.5-pro", Stream: stream, Messages: []chat.Message{question}})))
}

// describe returns what tests compare of a reply.
func describe(t testing.TB, r providertest.Reply) string {
	t.Helper()
	d := struct {
		Text, Reasoning, Signature string          `json:",omitempty"`
		ToolCalls                  []chat.ToolCall `json:",omitempty"`
		Stop                       chat.StopReason `json:",omitempty"`
		Usage                      *chat.Usage     `json:",omitempty"`
		ErrorKind                  string          `json:",omitempty"`
		Error                      string          `json:",omitempty"`
	}{Text: r.Text, Reasoning: r.Reasoning, Signature: r.Signature, ToolCalls: r.ToolCalls, Stop: r.Stop}
	if r.Err == nil {
		d.Usage = &r.Usage
	} else {
		d.ErrorKind, d.Error = "none", r.Err.Error()
		if e, ok := errors.AsType[*provider.Error](r.Err); ok {
			d.ErrorKind = string(e.Kind)
		}
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(d); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestReplies reads replies as the API and gateways before it send them. What comes
// out is the same however the bytes are cut.
func TestReplies(t *testing.T) {
	files, err := filepath.Glob("testdata/replies/*.*")
	if err != nil || len(files) < 20 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		ext := filepath.Ext(file)
		if ext == ".golden" {
			continue
		}
		t.Run(strings.ReplaceAll(filepath.Base(file), ".", "_"), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			stream := ext == ".sse"
			whole := func() io.Reader { return bytes.NewReader(data) }
			got := answered(t, whole, stream)
			providertest.Golden(t, strings.TrimSuffix(file, ext)+"_"+ext[1:]+".golden", got, *update)
			for name, other := range map[string]answer{
				"byte_by_byte": func() io.Reader { return iotest.OneByteReader(bytes.NewReader(data)) },
				"crlf":         func() io.Reader { return bytes.NewReader(bytes.ReplaceAll(data, []byte("\n"), []byte("\r\n"))) },
			} {
				if again := answered(t, other, stream); again != got {
					t.Errorf("%s: got\n%s\nwant\n%s", name, again, got)
				}
			}
		})
	}
}

// TestFailureAfterTheFinish checks that a reply is complete with its finish reason.
func TestFailureAfterTheFinish(t *testing.T) {
	const doc = `data: {"candidates": [{"content": {"parts": [{"text": "done"}]}, "finishReason": "STOP"}]}` + "\n\n"
	broken := func() io.Reader {
		return io.MultiReader(strings.NewReader(doc), iotest.ErrReader(errors.New("connection reset")))
	}
	if got := answered(t, broken, true); !strings.Contains(got, `"Stop": "stop"`) {
		t.Errorf("got %s", got)
	}
}

// FuzzStream checks that no reply makes the client panic or break the rules of a
// reply, which Collect looks after.
func FuzzStream(f *testing.F) {
	files, err := filepath.Glob("testdata/replies/*.*")
	if err != nil || len(files) == 0 {
		f.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		if filepath.Ext(file) != ".golden" {
			f.Add(data, filepath.Ext(file) == ".sse")
		}
	}
	f.Fuzz(func(t *testing.T, data []byte, stream bool) {
		answered(t, func() io.Reader { return bytes.NewReader(data) }, stream)
	})
}

// BenchmarkStream measures a piece of a streamed reply, from the bytes to the chunk.
func BenchmarkStream(b *testing.B) {
	data, err := os.ReadFile("testdata/replies/text.sse")
	if err != nil {
		b.Fatal(err)
	}
	piece, last, _ := bytes.Cut(data, []byte("\n\n"))
	stream := func() io.Reader {
		return io.MultiReader(bytes.NewReader(bytes.Repeat(append(piece, "\n\n"...), b.N)), bytes.NewReader(last))
	}
	b.ReportAllocs()
	b.ResetTimer()
	answered(b, stream, true)
}
