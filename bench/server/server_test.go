//go:build unix

// Package server_test measures what the server adds to a model: the time to the first token, short
// answers a second, and watchers of a run. Load generator, provider and servers are processes of this
// machine, so what counts are the ratios of one run. The peer is the gateway of Portkey, which passes
// requests to providers, too.
//
//	go test -bench . -benchtime 1x ./bench/server
//
// -benchtime Nx repeats each measurement N times, and reports the best of them.
package server_test

import (
	"math/rand/v2"
	"testing"
	"time"
)

// configuration has the provider at url as client up, and limits that the load does not reach.
func configuration(url string) map[string]string {
	return map[string]string{"config.yaml": `model: builtin:echo
clients:
- type: builtin
- type: openai-compatible
  name: up
  api_base: ` + url + `/v1
  api_key: none
  models:
  - {name: m, max_input_tokens: 100000}
api:
  limits: {max_concurrent_requests: 10000, per_subject_concurrency: 10000}
`}
}

const question = `"messages":[{"role":"user","content":"How are you?"}]`

// through returns the ways to the provider: directly, through the server, and through the gateway.
func through(b *testing.B, provider string, loki, gateway *program, rest string) []target {
	b.Helper()
	return []target{
		post("provider", provider+"/v1/chat/completions", `{"model":"m",`+question+rest+`}`),
		post("chat", loki.url+"/v1/chat/completions", `{"model":"up:m",`+question+rest+`}`),
		post("completions", loki.url+"/v1/completions", `{"model":"up:m","prompt":"How are you?"`+rest+`}`),
		post("portkey", gateway.url+"/v1/chat/completions", `{"model":"m",`+question+rest+`}`,
			"Authorization", "Bearer none", "x-portkey-provider", "openai", "x-portkey-custom-host", provider+"/v1"),
	}
}

// BenchmarkFirstToken has 50 clients ask for streams, one server after the other. Each client pauses for
// a random time between its requests. The figures are milliseconds beyond the provider's own time.
func BenchmarkFirstToken(b *testing.B) {
	const users, requests = 50, 1500
	provider := newProvider(b, 200*time.Millisecond)
	targets := through(b, provider, startLoki(b, configuration(provider)), startGateway(b), `,"stream":true`)
	client := newClient(b, users)
	best := map[string][]time.Duration{}
	for b.Loop() {
		for _, t := range targets {
			took := make([]time.Duration, requests)
			crowd(b, users, requests, func(n int) (err error) {
				time.Sleep(rand.N(200 * time.Millisecond))
				took[n], err = t.firstToken(b.Context(), client)
				return err
			})
			took = took[users:] // without those that make connections and warm up
			if old := best[t.name]; old == nil || quantile(took, 0.99) < quantile(old, 0.99) {
				best[t.name] = took
			}
		}
	}
	b.ReportMetric(0, "ns/op")
	for _, t := range targets {
		b.ReportMetric(quantile(best[t.name], 0.5), t.name+"-p50-ms")
		b.ReportMetric(quantile(best[t.name], 0.99), t.name+"-p99-ms")
	}
}

// BenchmarkAnswers has 32 clients ask for short answers, as many as they can get.
func BenchmarkAnswers(b *testing.B) {
	const users, requests = 32, 4000
	provider := newProvider(b, 0)
	loki, gateway := startLoki(b, configuration(provider)), startGateway(b)
	targets := append(through(b, provider, loki, gateway, ""),
		post("echo-chat", loki.url+"/v1/chat/completions", `{"model":"builtin:echo",`+question+`}`),
		post("echo-completions", loki.url+"/v1/completions", `{"model":"builtin:echo","prompt":"How are you?"}`))
	client := newClient(b, users)
	best, cpu := map[string]float64{}, map[string]float64{}
	for b.Loop() {
		for _, t := range targets {
			ask := func(int) error { return t.once(b.Context(), client) }
			crowd(b, users, requests/10, ask) // connections, caches, compiled code
			before, beforeGateway := loki.cpu(b), gateway.cpu(b)
			took := crowd(b, users, requests, ask)
			used := loki.cpu(b) - before
			if t.name == "portkey" {
				used = gateway.cpu(b) - beforeGateway
			}
			if rate := requests / took.Seconds(); rate > best[t.name] {
				best[t.name], cpu[t.name] = rate, used.Seconds()*1e6/requests
			}
		}
	}
	b.ReportMetric(0, "ns/op")
	for _, t := range targets {
		b.ReportMetric(best[t.name], t.name+"/s")
		if t.name != "provider" {
			b.ReportMetric(cpu[t.name], t.name+"-cpu-µs")
		}
	}
}
