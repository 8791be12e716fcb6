package rest

import (
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestWriteJSON: an answer has no secrets, and stays JSON.
func TestWriteJSON(t *testing.T) {
	a := New(Options{Hide: func(text string) string { return strings.ReplaceAll(text, "123456", "***KEY***") }})
	w := httptest.NewRecorder()
	body := map[string]any{"at": 1234567, "text": `say "123456" \ 123456`, "name 123456": []string{"a", ""}}
	if err := a.writeJSON(w, 200, body); err != nil {
		t.Fatal(err)
	}
	const want = `{"at":1234567,"name ***KEY***":["a",""],"text":"say \"***KEY***\" \\ ***KEY***"}` + "\n"
	if got := w.Body.String(); got != want || !json.Valid([]byte(got)) {
		t.Errorf("got %s, want %s", got, want)
	}
}
