package server_test

import (
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"loki/internal/frontend/api"
	"loki/internal/frontend/server/servertest"
	"loki/internal/service/postgres/postgrestest"
)

const spendingReplies = `
default: {reply: "yes", usage: {input_tokens: 10, output_tokens: 10}, delay: 5ms}
`

// spendingConfig has models whose calls use 20 tokens, and limits of 200 tokens a day for each subject.
func spendingConfig(keys string) string {
	return "model: offline:script\nclients:\n  - {type: builtin, name: offline, script: replies.yaml}\napi:\n  spending: {subject_day: {tokens: 200}}\n  auth:\n    keys:\n" + keys
}

// TestSpendingLimit has 50 clients of a subject reach its limit at once, at one server with files, and at two of a database.
func TestSpendingLimit(t *testing.T) {
	alice, aliceKey := servertest.Key("alice", 1, "read, write")
	bob, bobKey := servertest.Key("bob", 2, "read, write")
	root, rootKey := servertest.Key("root", 3, `"*"`)
	as := func(key string) []string { return []string{"Authorization", "Bearer " + key} }
	config := spendingConfig(aliceKey + bobKey + rootKey)
	files := func(store string) servertest.Files {
		return servertest.Files{
			"config.yaml": config + store, "replies.yaml": spendingReplies,
			"agents/two/graph.yaml": "name: two\nstart: a\nnodes:\n  a: {type: llm, prompt: one, next: b}\n  b: {type: llm, prompt: two, next: c}\n  c: {type: end, output: done}\n",
		}
	}
	for _, kind := range []string{"files", "PostgreSQL"} {
		t.Run(kind, func(t *testing.T) {
			var servers []*servertest.Server
			if kind == "files" {
				servers = append(servers, servertest.Start(t, files("")))
			} else {
				address := postgrestest.Database(t)
				servers = append(servers, servertest.Start(t, files("store: "+address+"\n")), servertest.Program(t, files("store: "+address+"\n")))
			}
			var done, refused atomic.Int64
			var all sync.WaitGroup
			for i := range 50 {
				all.Go(func() {
					s := servers[i%len(servers)]
					for {
						a := s.Post("/v1/completions", `{"prompt": "hello"}`, as(alice)...)
						after, _ := strconv.Atoi(a.Header.Get("Retry-After"))
						switch {
						case a.Status == http.StatusServiceUnavailable: // more requests than a subject may have at work
							continue
						case a.Status == http.StatusOK:
							done.Add(1)
						case a.Status == http.StatusTooManyRequests && a.Code() == "limit_reached" && after > 0 && after <= 24*60*60:
							refused.Add(1)
						default:
							t.Errorf("%d %v %s", a.Status, a.Header, a.Body)
						}
						return
					}
				})
			}
			all.Wait()
			if n := done.Load(); n < 9 || n > int64(10+len(servers)) || n+refused.Load() != 50 {
				t.Errorf("%d calls of 20 tokens done with a limit of 200, %d refused", n, refused.Load())
			}
			last := servers[len(servers)-1]
			for path, body := range map[string]string{
				"/v1/agents/two/runs": `{"prompt": "x"}`, "/v1/chat/completions": `{"model": "agent:two", "messages": [{"role": "user", "content": "x"}]}`,
			} {
				if a := last.Post(path, body, as(alice)...); a.Status != http.StatusTooManyRequests || !strings.Contains(a.Body, "limit_reached") || a.Header.Get("Retry-After") == "" {
					t.Errorf("%s: %d %v %s", path, a.Status, a.Header, a.Body)
				}
			}

			// Another subject has a limit of its own. A run at work is suspended until the next day.
			for range 9 {
				expect(t, last.Post("/v1/completions", `{"prompt": "hello"}`, as(bob)...), http.StatusOK)
			}
			var r api.RunDetail
			expect(t, last.Post("/v1/agents/two/runs", `{"prompt": "x", "wait": 60}`, as(bob)...), http.StatusCreated).JSON(t, &r)
			if r.Status != "suspended" || r.Code != "limit" {
				t.Errorf("%+v", r.Run)
			}

			usage := func(key, query string) (list api.List[api.Usage]) {
				t.Helper()
				expect(t, last.Get("/v1/usage?"+query, as(key)...), http.StatusOK).JSON(t, &list)
				return list
			}
			for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) { // the other server writes each second
				list := usage(root, "by=subject")
				if len(list.Data) == 2 && list.Data[0].Name == "alice" && list.Data[0].Calls == int(done.Load()) && list.Data[0].InputTokens == 10*int(done.Load()) && list.Data[1].Calls == 10 {
					break
				}
				if time.Now().After(deadline) {
					t.Fatalf("%+v", list)
				}
			}
			if list := usage(bob, "by=agent&from=2026-01-01"); len(list.Data) != 2 || list.Data[0].Calls != 9 || list.Data[1].Name != "two" {
				t.Errorf("%+v", list)
			}
			if list := usage(bob, "by=key&until=2026-01-01&from=2025-12-01"); len(list.Data) != 0 {
				t.Errorf("%+v", list)
			}
			expect(t, last.Get("/v1/usage?by=model", as(bob)...), http.StatusBadRequest)
			expect(t, last.Get("/v1/usage?from=yesterday", as(bob)...), http.StatusBadRequest)
		})
	}
}
