package openai_test

import (
	"encoding/base64"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"loki/internal/frontend/server/servertest"
)

// withFile is a chat and the input of a response about a file.
func withFile(model, members string) (chat, response string) {
	chat = `{"model":"` + model + `","messages":[{"role":"user","content":[{"type":"text","text":"Read."},{"type":"file","file":{` + members + `}}]}]}`
	return chat, input(model, `[{"role":"user","content":[{"type":"input_text","text":"Read."},{"type":"input_file",`+members+`}]}]`, "")
}

// TestFiles: documents reach the model as text, in both formats and with agents of both kinds.
func TestFiles(t *testing.T) {
	url := newServer(t)
	docx, err := os.ReadFile("../../../base/document/testdata/sample.docx")
	if err != nil {
		t.Fatal(err)
	}
	text := base64.StdEncoding.EncodeToString([]byte("The harbor opens at nine."))
	for _, tt := range []struct{ name, model, members, want string }{
		{"text", "builtin:echo", `"filename":"a.txt","file_data":"data:text/plain;base64,` + text + `"`, "The harbor opens at nine."},
		{"without_type", "builtin:echo", `"filename":"a.md","file_data":"` + text + `"`, "a.md ====="},
		{"document", "builtin:echo", `"filename":"sample.docx","file_data":"data:application/vnd.openxmlformats-officedocument.wordprocessingml.document;base64,` + base64.StdEncoding.EncodeToString(docx) + `"`, "sample.docx ====="},
		{"graph", "agent:hello", `"filename":"a.txt","file_data":"data:text/plain;base64,` + text + `"`, "The harbor opens at nine."},
	} {
		t.Run(tt.name, func(t *testing.T) {
			chat, response := withFile(tt.model, tt.members)
			if status, _, body := post(t, url+"/v1/chat/completions", chat); status != http.StatusOK || !strings.Contains(get(t, body, "choices.0.message.content"), tt.want) {
				t.Errorf("chat: %d: %s", status, body)
			}
			if status, _, body := post(t, url+"/v1/responses", response); status != http.StatusOK || !strings.Contains(get(t, body, "output_text"), tt.want) {
				t.Errorf("response: %d: %s", status, body)
			}
		})
	}
	for _, tt := range []struct{ name, members, param string }{
		{"not_base64", `"filename":"a.txt","file_data":"data:text/plain;base64,%%%"`, ""},
		{"no_text", `"filename":"a.bin","file_data":"AAECAwAA"`, ""},
		{"kept_elsewhere", `"file_id":"file-1"`, "content[1]"},
		{"file_of_the_server", `"file_url":"file:///etc/passwd"`, "content[1]"},
		{"private_address", `"file_url":"http://127.0.0.1:1/a.pdf"`, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			chat, response := withFile("builtin:echo", tt.members)
			if status, _, body := post(t, url+"/v1/chat/completions", chat); status != http.StatusBadRequest || !strings.HasPrefix(get(t, body, "error.param"), "messages") {
				t.Errorf("chat: %d: %s", status, body)
			}
			if status, _, body := post(t, url+"/v1/responses", response); status != http.StatusBadRequest || !strings.HasPrefix(get(t, body, "error.param"), "input") || !strings.Contains(get(t, body, "error.param"), tt.param) {
				t.Errorf("response: %d: %s", status, body)
			}
		})
	}
}

// TestFetchedParts: pictures and documents are fetched from addresses that are allowed.
func TestFetchedParts(t *testing.T) {
	fetched := 0
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fetched++
		if r.URL.Path == "/a.png" {
			w.Header().Set("Content-Type", "image/png")
			_, _ = w.Write([]byte("\x89PNG\r\n\x1a\n"))
			return
		}
		_, _ = w.Write([]byte("The harbor opens at nine."))
	}))
	defer web.Close()
	with := maps.Clone(files)
	with[".env"] = "LOKI_FETCH_ALLOW=127.0.0.1\n"
	url := servertest.Start(t, with).URL
	picture := `{"model":"builtin:echo","messages":[{"role":"user","content":[{"type":"text","text":"See"},{"type":"image_url","image_url":{"url":"` + web.URL + `/a.png"}}]}]}`
	if status, _, body := post(t, url+"/v1/chat/completions", picture); status != http.StatusOK || fetched != 1 {
		t.Errorf("the picture: %d, %d requests: %s", status, fetched, body)
	}
	text := strings.Replace(picture, "/a.png", "/a.txt", 1)
	if status, _, body := post(t, url+"/v1/chat/completions", text); status != http.StatusBadRequest || !strings.Contains(get(t, body, "error.message"), "is not a picture") {
		t.Errorf("a text as a picture: %d: %s", status, body)
	}
	_, response := withFile("builtin:echo", `"file_url":"`+web.URL+`/a.txt"`)
	if status, _, body := post(t, url+"/v1/responses", response); status != http.StatusOK || !strings.Contains(get(t, body, "output_text"), "The harbor opens at nine.") {
		t.Errorf("the document: %d: %s", status, body)
	}
}
