//go:build unix

package server_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// newProvider starts a provider of OpenAI's chat completions on loopback. Without stream it answers at
// once. With it, the first token comes after hold, and its text is how long that really took: "h", the
// nanoseconds since the request came, and a period. So a client can subtract it.
func newProvider(b *testing.B, hold time.Duration) (url string) {
	b.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/chat/completions", func(w http.ResponseWriter, r *http.Request) {
		came := time.Now()
		var request struct{ Stream bool }
		body, err := io.ReadAll(r.Body)
		if err != nil || json.Unmarshal(body, &request) != nil {
			http.Error(w, "not a request", http.StatusBadRequest)
			return
		}
		if !request.Stream {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"id":"c1","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"Fine."},"finish_reason":"stop"}],"usage":{"prompt_tokens":5,"completion_tokens":2,"total_tokens":7}}`)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		flush := w.(http.Flusher).Flush
		chunk := func(delta, finish string) {
			fmt.Fprintf(w, "data: {\"id\":\"c1\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":%s,\"finish_reason\":%s}]}\n\n", delta, finish)
		}
		flush()
		time.Sleep(hold)
		chunk(fmt.Sprintf(`{"role":"assistant","content":"h%d."}`, time.Since(came)), "null")
		flush()
		chunk(`{"content":" That was all."}`, "null")
		chunk("{}", `"stop"`)
		_, _ = io.WriteString(w, "data: {\"id\":\"c1\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\"choices\":[],\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":6,\"total_tokens\":11}}\n\ndata: [DONE]\n\n")
	})
	server := httptest.NewServer(mux)
	b.Cleanup(server.Close)
	return server.URL
}
