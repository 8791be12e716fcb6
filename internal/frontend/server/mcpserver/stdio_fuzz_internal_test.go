package mcpserver

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// FuzzMessages: whatever a client writes, what goes on are messages, and the rest has answers that are JSON.
func FuzzMessages(f *testing.F) {
	for _, line := range []string{"", "[]", "[[{}]]", `{"jsonrpc":"2.0","id":1,"method":"ping"}`, `[{"jsonrpc":"2.0","method":"x"},7]`, `{"jsonrpc":"2.0","id":"a","error":{"code":"x"}}`, `{"jsonrpc":"2.0","method":null}`} {
		f.Add([]byte(line))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		line = bytes.TrimSpace(bytes.ReplaceAll(line, []byte("\n"), nil))
		good, refused := messages(line)
		if len(line) > 0 && len(good) == 0 && refused == "" {
			t.Errorf("%q has no answer", line)
		}
		for one := range bytes.Lines(good) {
			if _, err := jsonrpc.DecodeMessage(one); err != nil {
				t.Errorf("%q goes on: %v", one, err)
			}
		}
		for one := range bytes.Lines([]byte(refused)) {
			if !json.Valid(one) {
				t.Errorf("the answer %q", one)
			}
		}
	})
}
