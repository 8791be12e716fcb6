// Package local finds model servers that run on the user's own machine: Ollama,
// llama.cpp, LM Studio and vLLM, all of which speak the OpenAI format below /v1.
//
// A probe is a place where one of them may listen. [Find] asks all places at the
// same time and does not wait long: a server that is there answers at once, and
// one that is not must not hold up a command. A server counts only if its answer
// is one that only that program gives, for any program may listen on a usual port.
package local

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

// Kind is one of the programs.
type Kind string

// The programs, as the platforms of the configuration are called.
const (
	Ollama   Kind = "ollama"
	LlamaCPP Kind = "llamacpp"
	LMStudio Kind = "lmstudio"
	VLLM     Kind = "vllm"
)

// Probe is a place where a server may listen.
type Probe struct {
	Kind Kind
	URL  string // without a path, such as http://127.0.0.1:11434
}

// Server is a server that answers.
type Server struct {
	Kind    Kind
	BaseURL string   // of the OpenAI format, ends in /v1
	Models  []string // the ones that chat, in the server's order; may be empty
}

// Patience is how long [Find] waits.
const Patience = 300 * time.Millisecond

// DefaultProbes returns the usual places. ollamaHost is the value of the variable
// OLLAMA_HOST, by which Ollama's own programs find the server; it may be empty.
func DefaultProbes(ollamaHost string) []Probe {
	return []Probe{
		{Ollama, OllamaURL(ollamaHost)},
		{LlamaCPP, "http://127.0.0.1:8080"},
		{LMStudio, "http://127.0.0.1:1234"},
		{VLLM, "http://127.0.0.1:8000"},
	}
}

// OllamaURL returns the address that a value of OLLAMA_HOST means, [SCHEME://][HOST][:PORT]. A server that listens on all
// addresses is asked on the loopback one.
func OllamaURL(host string) string {
	scheme, rest, hasScheme := strings.Cut(strings.Trim(strings.TrimSpace(host), `"'`), "://")
	port := "11434"
	switch {
	case !hasScheme:
		scheme, rest = "http", scheme
	case scheme == "https":
		port = "443"
	default:
		scheme, port = "http", "80"
	}
	rest, _, _ = strings.Cut(rest, "/")
	name, p, err := net.SplitHostPort(rest)
	if err != nil {
		name, p = strings.Trim(rest, "[]"), ""
	}
	if p != "" {
		port = p
	}
	switch ip := net.ParseIP(name); {
	case name == "", ip != nil && ip.IsUnspecified():
		name = "127.0.0.1"
	}
	return (&url.URL{Scheme: scheme, Host: net.JoinHostPort(name, port)}).String()
}

// Find asks all places at once and returns the servers that have answered within
// [Patience], in the order of the probes. Servers that fail, refuse or are another
// program are left out. A nil client means one without a proxy.
func Find(ctx context.Context, client *http.Client, probes []Probe) []Server {
	if client == nil {
		t := &http.Transport{DisableKeepAlives: true}
		client = &http.Client{Transport: t, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	}
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	found := make([]*Server, len(probes)) // goroutine i writes found[i] only
	var wg sync.WaitGroup
	for i, p := range probes {
		wg.Go(func() { found[i] = p.ask(ctx, client) }) // ends with ctx
	}
	wg.Wait()
	var servers []Server
	for _, s := range found {
		if s != nil {
			servers = append(servers, *s)
		}
	}
	return servers
}

// ask returns the server at p, nil if there is none.
func (p Probe) ask(ctx context.Context, client *http.Client) *Server {
	for _, q := range questions(p.Kind) {
		doc, ok := answer(ctx, client, http.MethodGet, p.URL+q.path, nil)
		if !ok {
			continue
		}
		if models, ok := q.models(doc); ok {
			return &Server{Kind: p.Kind, BaseURL: p.URL + "/v1", Models: models}
		}
	}
	return nil
}

// maxList bounds what is read of an answer, in bytes.
const maxList = 4 << 20

// answer returns the body of a successful response.
func answer(ctx context.Context, client *http.Client, method, url string, body io.Reader) ([]byte, bool) {
	req, err := http.NewRequestWithContext(ctx, method, url, body)
	if err != nil {
		return nil, false
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, false
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, false
	}
	doc, err := io.ReadAll(io.LimitReader(resp.Body, maxList))
	return doc, err == nil
}
