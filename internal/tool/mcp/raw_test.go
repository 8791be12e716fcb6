package mcp

import (
	"encoding/base64"
	"encoding/json"
	"io"
	"log/slog"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestKeep: what a server sent comes back as it was.
func TestKeep(t *testing.T) {
	t.Parallel()
	log := slog.New(slog.DiscardHandler)
	const result = `{"content":[{"type":"ui","n":1}],"structuredContent":{"z":1917043659912705297,"a":1.50}}`
	var m struct {
		Result sdk.CallToolResult `json:"result"`
	}
	if err := json.Unmarshal(keep([]byte("\ufeff"+`{"jsonrpc":"2.0","id":7,"result":`+result+`}`), log), &m); err != nil {
		t.Fatal(err)
	}
	if got := string(original(&m.Result, m.Result.Meta)); got != result {
		t.Errorf("got %s", got)
	}
	for _, same := range []string{`{"jsonrpc":"2.0","method":"x","params":{"content":[1]}}`, `{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"m"}}`, `{`, ``, `[]`} {
		if got := string(keep([]byte(same), log)); got != same {
			t.Errorf("%s became %s", same, got)
		}
	}
	for _, tt := range [][2]string{
		{`{"jsonrpc":"2.0","id":"12","error":{"code":1,"message":"m"}}`, `{"error":{"code":1,"message":"m"},"id":12,"jsonrpc":"2.0"}`},
		{`{"jsonrpc":"2.0","id":"12","method":"ping"}`, `{"jsonrpc":"2.0","id":"12","method":"ping"}`},
		{`{"jsonrpc":"2.0","id":"a12","result":{}}`, `{"jsonrpc":"2.0","id":"a12","result":{}}`},
		{
			`{"id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":true,"prompts":false,"logging":null,"resources":{"subscribe":"no"},"tasks":{"list":true}},"serverInfo":{"version":2}}}`,
			`{"id":1,"result":{"capabilities":{"logging":null,"resources":{},"tasks":{"list":true},"tools":{}},"protocolVersion":"2025-11-25"}}`,
		},
	} {
		if got := string(keep([]byte(tt[0]), log)); got != tt[1] {
			t.Errorf("%s became %s", tt[0], got)
		}
	}
	for version, want := range map[string]string{
		"2024-10-07": "2024-11-05", "2027-01-01": "2025-11-25", "2025-06-18": "2025-06-18", "DRAFT": "2025-11-25", "2025-04-01": "2025-03-26", "1.0": "2024-11-05",
	} {
		if got := knownVersion(version); got != want {
			t.Errorf("%s is treated as %s, want %s", version, got, want)
		}
	}
}

// TestContents: what a tool returned, as a model gets it.
func TestContents(t *testing.T) {
	t.Parallel()
	png := base64.StdEncoding.EncodeToString([]byte("\x89PNG\r\n\x1a\n12345678"))
	jpeg := base64.RawURLEncoding.EncodeToString([]byte("\xff\xd8\xff\xe0\xfb\xff12345"))
	large := base64.StdEncoding.EncodeToString(append([]byte("\x89PNG\r\n\x1a\n"), make([]byte, maxPicture)...))
	for _, tt := range []struct{ name, in, want, pictures string }{
		{"texts", `{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}`, "a\nb", ""},
		{"nothing", `{"content":[]}`, "", ""},
		{"no_list", `{"content":"a"}`, "a", ""},
		{"one_block", `{"content":{"type":"text","text":"a"}}`, "a", ""},
		{"unknown", `{"content":[{"type":"text","text":"a"},{"type":"ui","html":"<b>"},7]}`, "a\n[content of the unknown kind \"ui\": {\"type\":\"ui\",\"html\":\"<b>\"}]\n[content that is not understood: 7]", ""},
		{"numbers", `{"structuredContent": {"b": 1917043659912705297, "a": 1e2}}`, `{"b":1917043659912705297,"a":1e2}`, ""},
		{"same_json", `{"content":[{"type":"text","text":"{\"id\": 1917043659912705297}"}],"structuredContent":{"id":1917043659912705297}}`, `{"id": 1917043659912705297}`, ""},
		{"other_number", `{"content":[{"type":"text","text":"{\"id\": 1917043659912705298}"}],"structuredContent":{"id":1917043659912705297}}`, `{"text":"{\"id\": 1917043659912705298}","structuredContent":{"id":1917043659912705297}}`, ""},
		{"wrapped_text", `{"content":[{"type":"text","text":"line\n"}],"structuredContent":{"content":"line"}}`, "line\n", ""},
		{"wrapped_json", `{"content":[{"type":"text","text":"[1]"}],"structuredContent":{"result":[1]}}`, "[1]", ""},
		{"text_and_more", `{"content":[{"type":"text","text":"a"}],"structuredContent":{"text":"a","n":1}}`, `{"text":"a","n":1}`, ""},
		{"several_texts", `{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}],"structuredContent":{"list":["a","b"]}}`, `{"list":["a","b"]}`, ""},
		{"different", `{"content":[{"type":"text","text":"a & b"}],"structuredContent":{"n":1}}`, `{"text":"a & b","structuredContent":{"n":1}}`, ""},
		{"null", `{"content":[{"type":"text","text":"a"}],"structuredContent":null}`, "a", ""},
		{"picture", `{"content":[{"type":"image","mimeType":"image/webp","data":"` + png + `"},{"type":"text","text":"a"}]}`, "[picture 1: image/png, 16 bytes]\na", "image/png"},
		{"picture_of_the_web", `{"content":[{"type":"image","data":"data:image/png;base64,` + jpeg + `"}]}`, "[picture 1: image/jpeg, 11 bytes]", "image/jpeg"},
		{"picture_as_resource", `{"content":[{"type":"resource","resource":{"uri":"x:1","mimeType":"image/png","blob":"` + png + `"}}]}`, "[picture 1: image/png, 16 bytes]", "image/png"},
		{"no_picture", `{"content":[{"type":"image","mimeType":"image/png","data":"AAAA"},{"type":"image","mimeType":"image/png","data":"?"}]}`, "[image image/png, 3 bytes, not shown]\n[image image/png, not shown: its data is not base64]", ""},
		{"large_picture", `{"content":[{"type":"image","mimeType":"image/png","data":"` + large + `"}]}`, "[image image/png, 5242888 bytes, not shown: a picture has at most 5 MiB]", ""},
		{"sound", `{"content":[{"type":"audio","mimeType":"audio/wav","data":"AAAA"}]}`, "[audio audio/wav, 3 bytes, not shown]", ""},
		{"resources", `{"content":[{"type":"resource_link","uri":"x:1","description":"X"},{"type":"resource","resource":{"uri":"x:2","text":"t"}},{"type":"resource","resource":{"uri":"x:3","mimeType":"a/b","blob":"AAAA"}}]}`, "[resource x:1] X\nt\n[resource x:3, a/b, 3 bytes, not shown]", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var r toolResult
			if err := json.Unmarshal([]byte(tt.in), &r); err != nil {
				t.Fatal(err)
			}
			got := r.contents(nil)
			types := ""
			for _, p := range got.pictures {
				kind, _, _ := strings.Cut(strings.TrimPrefix(p.URL, "data:"), ";")
				types += kind
			}
			if got.text() != tt.want || types != tt.pictures {
				t.Errorf("got %q with %q, want %q with %q", got.text(), types, tt.want, tt.pictures)
			}
		})
	}
}

// TestKeeper: the events of a stream stay events, however they are cut and written.
func TestKeeper(t *testing.T) {
	t.Parallel()
	const in = ": hi\r\n\r\nid: 1\ndata: a\ndata: b\n\nevent: endpoint\ndata:/x\r\n\r\nretry: 5\n\n\ndata: end"
	const want = ": hi\n\nid: 1\ndata: <a\ndata: b>\n\nevent: endpoint\ndata: </x>\n\nretry: 5\n\n\ndata: <end>"
	for n := 1; n <= len(in); n++ {
		k := &keeper{ReadCloser: io.NopCloser(&chunks{in, n}), keep: func(b []byte) []byte { return []byte("<" + string(b) + ">") }, max: 1000}
		got, err := io.ReadAll(k)
		if strings.TrimRight(string(got), "\n") != want || err != nil {
			t.Fatalf("in pieces of %d: %q, %v", n, got, err)
		}
	}
	k := &keeper{ReadCloser: io.NopCloser(strings.NewReader(strings.Repeat("data: x\n", 100000))), keep: func(b []byte) []byte { return b }, max: 1000}
	if _, err := io.ReadAll(k); err != errHuge {
		t.Errorf("a huge event: %v", err)
	}
}

// chunks is read in pieces of n bytes.
type chunks struct {
	rest string
	n    int
}

func (c *chunks) Read(p []byte) (int, error) {
	if c.rest == "" {
		return 0, io.EOF
	}
	n := copy(p[:min(len(p), c.n)], c.rest)
	c.rest = c.rest[n:]
	return n, nil
}

// TestWords: what a server says about a refusal, in one line.
func TestWords(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ kind, in, want string }{
		{"text/plain", "No such\n workspace", "No such workspace"},
		{"application/json", `{"error":{"message":"bad key","code":1}}`, "bad key"},
		{"application/json", `{"error":"invalid_token","error_description":"it has expired"}`, "invalid_token: it has expired"},
		{"application/json", `{"detail":[{"msg":"x is missing"}]}`, "x is missing"},
		{"application/json", `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Unsupported protocol version","data":{"supported":["2024-11-05"]}}}`, `Unsupported protocol version {"supported":["2024-11-05"]}`},
		{"application/json", `{"a":1}`, `{"a":1}`},
		{"text/html", "<html><head><style>p{}</style><title>502 Bad Gateway</title></head><body><h1>Bad <b>Gateway</b></h1></body></html>", "502 Bad Gateway Bad Gateway"},
		{"", "", ""},
	} {
		if got := wordsOf([]byte(tt.in), tt.kind); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.in, got, tt.want)
		}
	}
}

// TestVariables: variables of the environment in every text of an entry.
func TestVariables(t *testing.T) {
	t.Parallel()
	f, err := Parse("mcp.json", []byte(`{"mcpServers":{
		"a":{"command":"${BIN}/x","args":["${A}","${NONE:-d}","${NONE}","$A","$${A}"],"env":{"P":"/x:${A}","Q":"${NONE}","R":"${NONE:-}","S":"${env:NONE}","T":"${env:BIN}","U":"${workspaceFolder}","V":"${workspaceFolder}/${env:BIN}"},"cwd":"${A:-b}"},
		"b":{"url":"https://${A}.example.com","headers":{"Authorization":"Bearer ${A}"}},
		"c":{"url":"https://example.com","headers":{"X-Key":"${NONE}"}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	o := &Options{Dir: "/ws", Getenv: func(name string) (string, bool) {
		v, ok := map[string]string{"A": "one{{S}}", "BIN": "/bin"}[name]
		return v, ok
	}}
	r, err := f.Servers[0].resolve(o)
	if err != nil {
		t.Fatal(err)
	}
	got, _ := json.Marshal([]any{r.Command, r.Args, r.Env, r.Dir})
	if want := `["/bin/x",["one{{S}}","d","${NONE}","$A","${A}"],{"P":"/x:one{{S}}","R":"","T":"/bin","U":"/ws","V":"/ws//bin"},"one{{S}}"]`; string(got) != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if r, err = f.Servers[1].resolve(o); err != nil || r.URL != "https://one{{S}}.example.com" || r.Headers["Authorization"] != "Bearer one{{S}}" || strings.Contains(r.redact("one{{S}}"), "one") {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err = f.Servers[2].resolve(o); err == nil || !strings.Contains(err.Error(), `headers.X-Key refers to the variable NONE, which is not set`) {
		t.Error(err)
	}
}
