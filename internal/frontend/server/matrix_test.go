package server_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"loki/internal/conversation/knowledge"
	"loki/internal/frontend/api"
	"loki/internal/frontend/server/servertest"
	"loki/internal/llm/event"
	"loki/internal/service/auth"
	"loki/internal/workflow/run/webhook"
)

// operations is what the tests of access know of the OpenAPI document: paths, methods, and what a request has.
type operations struct {
	Paths map[string]map[string]struct {
		Security   []map[string][]string
		Parameters []struct {
			Name, In string
			Required bool
			Schema   *jsonSchema
		}
		RequestBody struct {
			Required bool
			Content  map[string]struct{ Schema *jsonSchema }
		}
	}
	Components struct{ Schemas map[string]*jsonSchema }
}

// operation is one endpoint.
type operation struct {
	method, path string
	public       bool
	scope        auth.Scope // that the document declares; empty if any key will do
	params       []string   // in its path
	headers      []string
	query        string // that it requires
	body         *jsonSchema
	required     bool // the body
}

func (o operation) String() string { return o.method + " " + o.path }

var pathParam = regexp.MustCompile(`\{(\w+)\}`)

// special are the endpoints that have a protocol of their own, or prove in another way who sends a request.
var special = []string{"/mcp", "/answer/{token}", "/v1/hooks/{name}"}

// readOperations returns the endpoints of a server: reading ones first, deleting ones last.
func readOperations(t *testing.T, s *servertest.Server) (list []operation, d operations) {
	t.Helper()
	s.Get("/openapi.json").JSON(t, &d)
	for path, methods := range d.Paths {
		if slices.Contains(special, path) {
			continue
		}
		for method, m := range methods {
			o := operation{method: strings.ToUpper(method), path: path, public: len(m.Security) == 0, body: m.RequestBody.Content["application/json"].Schema, required: m.RequestBody.Required}
			for _, match := range pathParam.FindAllStringSubmatch(path, -1) {
				o.params = append(o.params, match[1])
			}
			for _, p := range m.Parameters {
				switch {
				case p.In == "header":
					o.headers = append(o.headers, p.Name)
				case p.In == "query" && p.Required:
					o.query += fmt.Sprintf("&%s=0", p.Name)
				}
			}
			if !o.public {
				if len(m.Security) != 1 || len(m.Security[0]["key"]) > 1 {
					t.Fatalf("%s: security %v", o, m.Security)
				}
				for _, scope := range m.Security[0]["key"] {
					o.scope = auth.Scope(scope)
				}
			}
			list = append(list, o)
		}
	}
	order := func(o operation) string {
		return map[string]string{http.MethodGet: "1", http.MethodPost: "2", http.MethodPatch: "2", http.MethodDelete: "3"}[o.method] + o.path
	}
	slices.SortFunc(list, func(a, b operation) int { return strings.Compare(order(a), order(b)) })
	if len(list) < 40 {
		t.Fatalf("%d endpoints", len(list))
	}
	return list, d
}

// smallest returns a value of a schema, with the required members only.
func (d operations) smallest(s *jsonSchema) any {
	switch {
	case s == nil:
		return "x"
	case s.Ref != "":
		return d.smallest(d.Components.Schemas[s.Ref[strings.LastIndexByte(s.Ref, '/')+1:]])
	case len(s.Enum) > 0:
		return s.Enum[0]
	case len(s.OneOf) > 0:
		return d.smallest(s.OneOf[0])
	case len(s.AnyOf) > 0:
		return d.smallest(s.AnyOf[0])
	}
	switch s.Type {
	case "object":
		o := make(map[string]any)
		for _, name := range s.Required {
			o[name] = d.smallest(s.Properties[name])
		}
		return o
	case "array":
		return []any{d.smallest(s.Items)}
	case "integer", "number":
		return 0
	case "boolean":
		return false
	}
	return "x"
}

// members calls visit with each member of a body, by its way in it.
func (d operations) members(s *jsonSchema, way string, seen []string, visit func(way string)) {
	if s == nil {
		return
	}
	if s.Ref != "" {
		if !slices.Contains(seen, s.Ref) {
			d.members(d.Components.Schemas[s.Ref[strings.LastIndexByte(s.Ref, '/')+1:]], way, append(slices.Clone(seen), s.Ref), visit)
		}
		return
	}
	for name, p := range s.Properties {
		visit(way + name)
		d.members(p, way+name+".", seen, visit)
	}
	d.members(s.Items, way, seen, visit)
	for _, one := range slices.Concat(s.AnyOf, s.OneOf) {
		d.members(one, way, seen, visit)
	}
}

const matrixConfig = "model: builtin:echo\nclients: []\napi:\n  memory: propose\n  limits: {per_subject_concurrency: 64}\n  auth:\n    keys:\n"

// TestScopes has keys of all kinds at all endpoints that the OpenAPI document has. What is allowed follows from the scope that
// the document declares, so that a new endpoint is tested, too.
func TestScopes(t *testing.T) {
	n, entries := 0, ""
	type role struct {
		name, key string
		allowed   func(auth.Scope) bool
	}
	var roles []role
	add := func(name, scopes string, allowed func(auth.Scope) bool) {
		n++
		key, entry := servertest.Key(name, n, scopes)
		entries += entry
		roles = append(roles, role{name, key, allowed})
	}
	begins := func(prefixes ...string) func(auth.Scope) bool {
		return func(s auth.Scope) bool {
			return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(string(s), p) })
		}
	}
	add("alice", "read, write", begins("read:", "write:", "run:"))
	add("reader", "read", begins("read:"))
	add("writer", "write", begins("write:", "run:"))
	add("root", `"*"`, func(auth.Scope) bool { return true })
	add("nothing", "", func(auth.Scope) bool { return false })
	for _, one := range auth.Scopes() {
		if strings.Contains(string(one), ":") {
			add(strings.ReplaceAll(string(one), ":", "_"), fmt.Sprintf("%q", one), func(s auth.Scope) bool { return s == one })
		}
	}
	s := servertest.Start(t, servertest.Files{"config.yaml": matrixConfig + entries})
	list, _ := readOperations(t, s)
	needed := make(map[auth.Scope]bool)
	for _, o := range list {
		path := pathParam.ReplaceAllString(o.path, "nosuchthing") + "?" + o.query
		body := ""
		if o.required {
			body = "{}"
		}
		needed[o.scope] = true
		if o.scope != "" && (!o.scope.Known() || !strings.Contains(string(o.scope), ":")) {
			t.Errorf("%s: %q is not a scope", o, o.scope)
		}
		if a := s.Do(o.method, path, body); slices.Contains([]int{http.StatusUnauthorized, http.StatusTooManyRequests}, a.Status) == o.public { // 429 after too many of them
			t.Errorf("%s without a key: %d %s", o, a.Status, a.Body)
		}
		for _, r := range roles {
			a := s.Do(o.method, path, body, "Authorization", "Bearer "+r.key)
			allowed := o.public || o.scope == "" || r.allowed(o.scope)
			switch {
			case !allowed && (a.Status != http.StatusForbidden || a.Code() != "forbidden" || !strings.Contains(a.Body, string(o.scope))):
				t.Errorf("%s as %s: %d %s, want 403", o, r.name, a.Status, a.Body)
			case allowed && !slices.Contains([]int{200, 201, 202, 204, 400, 404, 409}, a.Status):
				t.Errorf("%s as %s: %d %s", o, r.name, a.Status, a.Body)
			}
		}
	}
	for _, scope := range auth.Scopes() { // admin:sessions is not needed by an endpoint: it shows the sessions of others
		if strings.Contains(string(scope), ":") && !needed[scope] && scope != auth.AdminSessions && scope != auth.AdminMetrics {
			t.Errorf("no endpoint needs the scope %s", scope)
		}
	}
}

// begun returns the answer to a request, without its body if that is a stream, which may not end.
func begun(t *testing.T, r *http.Request) servertest.Answer {
	t.Helper()
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		return servertest.Answer{Status: res.StatusCode, Header: res.Header}
	}
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return servertest.Answer{Status: res.StatusCode, Header: res.Header, Body: string(body)}
}

// TestOwnersMatrix looks for all that has an id in the OpenAPI document, and has Bob try it with those of what is Alice's. An endpoint
// that takes an id and is not known here fails the test.
func TestOwnersMatrix(t *testing.T) {
	alice, aliceKey := servertest.Key("alice", 1, "read, write")
	bob, bobKey := servertest.Key("bob", 2, "read, write")
	root, rootKey := servertest.Key("root", 3, `"*"`)
	s := servertest.Start(t, servertest.Files{
		"config.yaml":               matrixConfig + aliceKey + bobKey + rootKey,
		"agents/asks/graph.yaml":    strings.Replace(askAgent, "assignees: [ada], ", "", 1),
		"agents/helper/config.yaml": "name: helper\ninstructions: Help.\n",
	})
	as := func(key string, more ...string) []string {
		return append([]string{"Authorization", "Bearer " + key}, more...)
	}
	var session, run, response, fact struct{ ID string }
	s.Post("/v1/memory", `{"text":"the secret fact"}`, as(alice)...).JSON(t, &fact)
	s.Post("/v1/sessions", `{"alias":"plans"}`, as(alice, "Idempotency-Key", "once")...).JSON(t, &session)
	if a := s.Post("/v1/sessions/"+session.ID+"/completions", `{"prompt":"the secret plan"}`, as(alice)...); a.Status != http.StatusOK {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	s.Post("/v1/agents/asks/runs", `{"prompt":"the secret run","wait":20}`, as(alice)...).JSON(t, &run)
	s.Post("/v1/responses", `{"model":"builtin:echo","input":"the secret response"}`, as(alice)...).JSON(t, &response)
	if a := s.Post("/v1/schedules", `{"name":"nightly","agent":"helper","cron":"@yearly","timezone":"UTC","prompt":"the secret schedule"}`, as(alice)...); a.Status != http.StatusCreated {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	var asked struct{ Data []struct{ ID string } }
	s.Get("/v1/runs/"+run.ID+"/questions", as(alice)...).JSON(t, &asked)
	if session.ID == "" || run.ID == "" || response.ID == "" || len(asked.Data) != 1 {
		t.Fatalf("%+v %+v %+v %+v", session, run, response, asked)
	}

	// What is in the place of a parameter: an object of Alice's, or a thing that all share.
	objects := map[string]string{"/v1/sessions/{id}": session.ID, "/v1/runs/{id}": run.ID, "/v1/schedules/{name}": "nightly", "/v1/memory/{id}": fact.ID}
	shared := []string{"/v1/agents/{name}", "/v1/models/{id}", "/v1/rags/{name}", "/v1/jobs/{id}", "/v1/hooks/{name}", "/v1/bulk/{id}"} // TestJobOwners and TestBulk have the jobs, and what of hooks takes a key needs admin:sessions
	bodies := map[string]string{
		"POST /v1/runs/{id}/answers":   fmt.Sprintf(`{%q: "yes"}`, asked.Data[0].ID),
		"POST /v1/sessions/{id}/agent": `{"name":"helper"}`,
		"POST /v1/sessions/{id}/role":  `{"name":"code"}`,
	}
	// Members of bodies and headers that name an object: a request with that of Alice's.
	named := map[string]string{
		"POST /v1/chat/completions X-Loki-Run-Id": `{"model":"agent:asks","messages":[{"role":"user","content":"yes"}]}`,
		"POST /v1/chat/completions loki.run_id":   `{"model":"agent:asks","messages":[{"role":"user","content":"yes"}],"loki":{"run_id":"` + run.ID + `"}}`,
		"POST /v1/responses X-Loki-Run-Id":        `{"model":"agent:asks","input":"yes"}`,
		"POST /v1/responses loki.run_id":          `{"model":"agent:asks","input":"yes","loki":{"run_id":"` + run.ID + `"}}`,
		"POST /v1/responses previous_response_id": `{"model":"builtin:echo","input":"what was it?","previous_response_id":"` + response.ID + `"}`,
	}
	// Ids of what the request itself has.
	within := []string{"messages.tool_call_id", "messages.tool_calls.id", "input.call_id", "input.id"}

	list, d := readOperations(t, s)
	type attempt struct {
		name   string
		do     func(key string) servertest.Answer
		delete bool
	}
	var attempts []attempt
	for _, o := range list {
		if len(o.params) > 0 && !slices.ContainsFunc(shared, func(begin string) bool { return strings.HasPrefix(o.path, begin) }) {
			path := strings.NewReplacer("{number}", "1", "{job}", "job-00000000", "{mid}", "1", "/signals/{name}", "/signals/paid").Replace(o.path)
			for begin, id := range objects {
				if strings.HasPrefix(path, begin) {
					path = strings.NewReplacer("{id}", id, "{name}", id).Replace(path)
				}
			}
			if strings.Contains(path, "{") {
				t.Errorf("%s: whose is what it names? Add it to this test", o)
				continue
			}
			body := bodies[o.String()]
			if body == "" && o.required {
				text, err := json.Marshal(d.smallest(o.body))
				if err != nil {
					t.Fatal(err)
				}
				body = string(text)
			}
			attempts = append(attempts, attempt{o.String(), func(key string) servertest.Answer {
				return begun(t, s.Request(o.method, path+"?"+o.query, body, as(key)...))
			}, o.method == http.MethodDelete})
		}
		inside := slices.Clone(o.headers)
		d.members(o.body, "", nil, func(way string) { inside = append(inside, way) })
		for _, member := range inside {
			name := strings.ToLower(member[strings.LastIndexByte(member, '.')+1:])
			if !strings.HasSuffix(name, "id") && !slices.Contains([]string{"session", "run", "response", "conversation", "job", "question"}, name) || slices.Contains(within, member) || name == "last-event-id" {
				continue
			}
			body, ok := named[o.String()+" "+member]
			if !ok {
				t.Errorf("%s %s: whose is what it names? Add it to this test", o, member)
				continue
			}
			var header []string
			if slices.Contains(o.headers, member) {
				header = []string{member, run.ID}
			}
			attempts = append(attempts, attempt{o.String() + " " + member, func(key string) servertest.Answer {
				return s.Do(o.method, o.path, body, as(key, header...)...)
			}, false})
		}
	}
	if len(attempts) < 25 {
		t.Fatalf("%d attempts", len(attempts))
	}
	missing := []string{"schedule_not_found", "fact_not_found", "session_not_found", "run_not_found", "previous_response_not_found"}
	for _, a := range attempts {
		if got := a.do(bob); got.Status != http.StatusNotFound || !slices.Contains(missing, got.Code()) || strings.Contains(got.Body, "secret") || strings.Contains(got.Body, "alice") {
			t.Errorf("%s of Alice's as Bob: %d %s", a.name, got.Status, got.Body)
		}
	}

	// His request with her key of idempotency is another request.
	var his struct{ ID string }
	got := s.Post("/v1/sessions", `{"alias":"other"}`, as(bob, "Idempotency-Key", "once")...)
	if got.JSON(t, &his); got.Status != http.StatusCreated || his.ID == session.ID || got.Header.Get("Idempotency-Replayed") != "" {
		t.Errorf("%d %v %s", got.Status, got.Header, got.Body)
	}
	for _, o := range list { // no list shows him anything of hers
		if o.method != http.MethodGet || len(o.params) > 0 {
			continue
		}
		got := s.Get(o.path, as(bob)...)
		for _, hers := range []string{session.ID, run.ID, response.ID, "secret", "alice"} {
			if strings.Contains(got.Body, hers) {
				t.Errorf("%s shows Bob %q: %s", o, hers, got.Body)
			}
		}
	}

	// She herself and the admin find all of it, so that the attempts were the right ones.
	for n, a := range attempts {
		key, who := alice, "Alice"
		if strings.HasPrefix(a.name, "GET") && n%2 == 0 && !strings.Contains(a.name, "/v1/memory") { // which belongs to one subject
			key, who = root, "the admin"
		}
		if a.delete && !strings.HasSuffix(a.name, "{id}") {
			continue // what she has not set is not found
		}
		if got := a.do(key); slices.Contains(missing, got.Code()) || got.Status == http.StatusUnauthorized || got.Status == http.StatusForbidden {
			t.Errorf("%s as %s: %d %s", a.name, who, got.Status, got.Body)
		}
	}
}

// TestInvalidText sends JSON that is not UTF-8, has halves of surrogate pairs, is compressed or says that it has another charset to
// all endpoints that the OpenAPI document has. What was wrong in it must not become another text.
func TestInvalidText(t *testing.T) {
	s := servertest.Start(t, servertest.Files{"config.yaml": "model: builtin:echo\nclients: []\n"})
	list, d := readOperations(t, s)
	n := 0
	for _, o := range list {
		if o.body == nil {
			continue
		}
		n++
		text, err := json.Marshal(d.smallest(o.body))
		if err != nil {
			t.Fatal(err)
		}
		path := pathParam.ReplaceAllString(o.path, "nosuchthing") + "?" + o.query
		with := func(x string) string {
			if strings.Contains(string(text), `"x"`) {
				return strings.ReplaceAll(string(text), `"x"`, `"`+x+`"`)
			}
			return `{"` + x + `": "` + x + `"}`
		}
		refused := func(status int, says, body string, headers ...string) {
			t.Helper()
			if a := s.Do(o.method, path, body, headers...); a.Status != status || !strings.Contains(a.Body, says) {
				t.Errorf("%s %q %q: %d %s", o, body, headers, a.Status, a.Body)
			}
		}
		for _, kind := range []string{"application/json", "application/json; charset=utf-8", "application/x-www-form-urlencoded"} {
			for _, wrong := range []string{"\xff", "a\xc3", "\xed\xa0\x80", "\xc0\xaf", "\xf4\x90\x80\x80"} {
				refused(http.StatusBadRequest, "UTF-8", with(wrong), "Content-Type", kind)
			}
			for _, wrong := range []string{`\ud800`, `\uDFFF`, `\ude00\ud83d`} {
				refused(http.StatusBadRequest, "half of a surrogate pair", with(wrong), "Content-Type", kind)
			}
		}
		refused(http.StatusUnsupportedMediaType, "utf-16", with("x"), "Content-Type", "application/json; charset=utf-16")
		refused(http.StatusUnsupportedMediaType, "gzip", with("x"), "Content-Encoding", "gzip")
	}
	if n < 14 {
		t.Errorf("%d endpoints take a body", n)
	}
	if a := s.Post("/v1/completions", "{\"prompt\": \"gr\u00fc\u00df \\ud83d\\ude00 \ufffd\"}"); a.Status != http.StatusOK || !strings.Contains(a.Body, "gr\u00fc\u00df \U0001f600 \ufffd") {
		t.Errorf("valid UTF-8: %d %s", a.Status, a.Body)
	}
}

// TestLinks has the token of a one-time link do more than to answer its question once: for other questions, other runs, later, with
// other methods, and at all endpoints that the OpenAPI document has.
func TestLinks(t *testing.T) {
	alice, aliceKey := servertest.Key("alice", 1, "read, write")
	s := servertest.Start(t, servertest.Files{
		"config.yaml": matrixConfig + aliceKey + "  trusted_proxies: [127.0.0.1/32]\n  audit: {sink: file, path: audit.log}\n",
		"agents/two/graph.yaml": `
name: two
start: first
nodes:
  first: {type: approval, question: "The secret first?", options: [yes, no], routes: {yes: second, no: second}, on_other: second, state_updates: {a: "{{choice}}"}}
  second: {type: approval, question: "The secret second?", options: [yes, no], routes: {yes: end, no: end}, on_other: end, state_updates: {b: "{{choice}}"}}
  end: {type: end, output: "{{a}} {{b}}"}
`,
	})
	s.Key = alice
	type question struct {
		ID    string
		Asked time.Time
	}
	asked := func(id string) (q question) {
		t.Helper()
		until(t, "the question", func() bool {
			var all struct{ Data []question }
			s.Get("/v1/runs/"+id+"/questions").JSON(t, &all)
			if len(all.Data) > 0 {
				q = all.Data[0]
			}
			return len(all.Data) == 1
		})
		return q
	}
	begin := func() (id string) {
		t.Helper()
		var r api.Run
		expect(t, s.Post("/v1/agents/two/runs", `{"prompt":"x","wait":20}`), http.StatusCreated).JSON(t, &r)
		return r.ID
	}
	now := time.Now()
	links, err := webhook.OpenLinks(filepath.Join(s.Dir, "state", "links.key"), nil)
	if err != nil {
		t.Fatal(err)
	}
	token := func(run string, q question, expires time.Time) string {
		t.Helper()
		text, err := links.Token(webhook.Link{Run: run, Question: q.ID, Asked: q.Asked.UnixNano(), Expires: expires})
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	mine, other := begin(), begin()
	first, others := asked(mine), asked(other)
	link := token(mine, first, now.Add(time.Hour))

	// As a key it opens nothing. Each request comes from an address of its own, so that there are not too many of one.
	list, d := readOperations(t, s)
	from := 0
	for _, o := range list {
		if o.public {
			continue
		}
		body := ""
		if o.required {
			text, _ := json.Marshal(d.smallest(o.body))
			body = string(text)
		}
		for _, id := range []string{mine, link} {
			path := pathParam.ReplaceAllString(o.path, id) + "?" + o.query
			for name, header := range map[string][]string{
				"bearer": {"Authorization", "Bearer " + link}, "cookie": {"Authorization", "", "Cookie", "token=" + link}, "query": {"Authorization", ""},
			} {
				if name == "query" {
					path += "&token=" + link + "&key=" + link
				}
				from++
				header = append(header, "X-Forwarded-For", fmt.Sprintf("198.51.%d.%d", from/250, from%250+1))
				if a := s.Do(o.method, path, body, header...); a.Status != http.StatusUnauthorized || strings.Contains(a.Body, "secret") {
					t.Errorf("%s with the link as %s: %d %s", o, name, a.Status, a.Body)
				}
			}
		}
	}

	form := []string{"Authorization", "", "Content-Type", "application/x-www-form-urlencoded"}
	use := func(method, link string) servertest.Answer {
		body := ""
		if method == http.MethodPost {
			body = "answer=no"
		}
		return s.Do(method, "/answer/"+link, body, form...)
	}
	foreign, err := webhook.OpenLinks(filepath.Join(t.TempDir(), "links.key"), nil)
	if err != nil {
		t.Fatal(err)
	}
	forged, err := foreign.Token(webhook.Link{Run: mine, Question: first.ID, Asked: first.Asked.UnixNano(), Expires: now.Add(time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, link string
		status     int
	}{
		{"expired", token(mine, first, now.Add(-time.Second)), http.StatusNotFound},
		{"of_another_server", forged, http.StatusNotFound},
		{"no_such_question", token(mine, question{"nosuch", first.Asked}, now.Add(time.Hour)), http.StatusGone},
		{"no_such_run", token("zzzzzzzz", first, now.Add(time.Hour)), http.StatusGone},
		{"asked_at_another_time", token(mine, question{first.ID, first.Asked.Add(1)}, now.Add(time.Hour)), http.StatusGone},
		{"question_of_another_run", token(mine, others, now.Add(time.Hour)), http.StatusGone},
		{"the_next_question", token(mine, question{"second", first.Asked}, now.Add(time.Hour)), http.StatusGone},
		{"beginning_of_a_run", token(mine[:4], first, now.Add(-time.Hour)), http.StatusNotFound},
	} {
		for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPost} {
			if a := use(method, tt.link); a.Status != tt.status || strings.Contains(a.Body, "secret") {
				t.Errorf("%s %s: %d %s", method, tt.name, a.Status, a.Body)
			}
		}
	}
	for _, method := range []string{http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions, http.MethodTrace} {
		if a := use(method, link); a.Status != http.StatusMethodNotAllowed || strings.Contains(a.Body, "secret") {
			t.Errorf("%s: %d %s", method, a.Status, a.Body)
		}
	}
	for _, below := range []string{"/", "/answers", "/../" + other, "?question=second", ";x"} {
		if a := s.Do(http.MethodPost, "/answer/"+link+below, "answer=no&question=second", form...); a.Status < 300 && a.Status >= 200 {
			t.Errorf("%s: %d", below, a.Status)
		}
	}
	if got := asked(mine); got != first {
		t.Fatalf("the question is %+v, was %+v", got, first)
	}

	// It shows its question, answers it, and nothing more.
	for _, method := range []string{http.MethodGet, http.MethodHead} {
		if a := use(method, link); a.Status != http.StatusOK || strings.Contains(a.Body, "alice") {
			t.Errorf("%s: %d %s", method, a.Status, a.Body)
		}
	}
	if a := use(http.MethodPost, link); a.Status != http.StatusOK && a.Status != http.StatusAccepted {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	until(t, "the second question", func() bool { return asked(mine).ID == "second" })
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPost} {
		if a := use(method, link); a.Status != http.StatusGone || strings.Contains(a.Body, "secret") {
			t.Errorf("%s after the answer: %d %s", method, a.Status, a.Body)
		}
	}
	if got := asked(mine); got.ID != "second" {
		t.Errorf("the question that waits is %+v", got)
	}
	if got := asked(other); got != others {
		t.Errorf("the question of the other run is %+v", got)
	}
	second := token(mine, asked(mine), now.Add(time.Hour))
	expect(t, s.Post("/v1/runs/"+mine+"/cancel", ""), http.StatusOK)
	if a := use(http.MethodPost, second); a.Status != http.StatusGone {
		t.Errorf("of a run that was canceled: %d %s", a.Status, a.Body)
	}
	expect(t, s.Post("/v1/runs/"+other+"/cancel", ""), http.StatusOK)
	expect(t, s.Do(http.MethodDelete, "/v1/runs/"+other, ""), http.StatusNoContent)
	if a := use(http.MethodPost, token(other, others, now.Add(time.Hour))); a.Status != http.StatusGone {
		t.Errorf("of a run that was deleted: %d %s", a.Status, a.Body)
	}

	// The record of who did what has the answer, once, and no subject.
	until(t, "the audit record", func() bool {
		text, _ := os.ReadFile(filepath.Join(s.Dir, "audit.log"))
		return strings.Contains(string(text), `"action":"run_delete"`)
	})
	text, err := os.ReadFile(filepath.Join(s.Dir, "audit.log"))
	n := 0
	for line := range strings.Lines(string(text)) {
		if strings.Contains(line, `"action":"run_answer"`) {
			if n++; !strings.Contains(line, `"target":"run:`+mine+`"`) || !strings.Contains(line, `"subject":""`) || !strings.Contains(line, `"route":"/answer/{token}"`) || strings.Contains(line, link) {
				t.Errorf("audit line %s", line)
			}
		}
	}
	if err != nil || n != 1 {
		t.Errorf("%d answers in the audit record (%v)", n, err)
	}
}

// TestJobOwners: a subject that may build knowledge bases sees the jobs that it has asked for, and an administrator all.
func TestJobOwners(t *testing.T) {
	alice, aliceKey := servertest.Key("alice", 1, `"read", "admin:rags"`)
	bob, bobKey := servertest.Key("bob", 2, `"read", "admin:rags"`)
	root, rootKey := servertest.Key("root", 3, `"*"`)
	s := servertest.Start(t, servertest.Files{"config.yaml": "rag_embedding_model: builtin:hash\n" + matrixConfig + aliceKey + bobKey + rootKey})
	for _, name := range []string{"rivers", "lakes"} {
		file := filepath.Join(s.Dir, name+".md")
		if err := os.WriteFile(file, []byte("The Mur flows through Graz."), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := s.App.Knowledge().Change(t.Context(), event.Scope{}, knowledge.Edit{Name: name, Add: []string{file}}); err != nil {
			t.Fatal(err)
		}
	}
	rebuild := func(key, name string) (id string) {
		t.Helper()
		var j api.Job
		expect(t, s.Post("/v1/rags/"+name+"/rebuild", "", "Authorization", "Bearer "+key), http.StatusAccepted).JSON(t, &j)
		return j.ID
	}
	hers, his := rebuild(alice, "rivers"), rebuild(bob, "lakes")
	for _, tt := range []struct {
		name, key, id string
		status        int
	}{
		{"hers", alice, hers, http.StatusOK},
		{"his", bob, his, http.StatusOK},
		{"his_as_alice", alice, his, http.StatusNotFound},
		{"hers_as_bob", bob, hers, http.StatusNotFound},
		{"hers_as_root", root, hers, http.StatusOK},
		{"his_as_root", root, his, http.StatusOK},
	} {
		for _, accept := range []string{"application/json", "text/event-stream"} {
			a := s.Get("/v1/jobs/"+tt.id, "Authorization", "Bearer "+tt.key, "Accept", accept)
			if a.Status != tt.status || tt.status == http.StatusNotFound && a.Code() != "job_not_found" {
				t.Errorf("%s as %s: %d %s", tt.name, accept, a.Status, a.Body)
			}
		}
	}
}
