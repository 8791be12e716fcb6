package local

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// Abilities are what a server says that a model can do.
type Abilities struct {
	Tools  bool // it calls functions
	Vision bool // it looks at pictures
}

// AbilitiesOf asks s what a model can do. ok is false if s does not say: it is a program
// or a version that does not know, or it failed. A nil client means
// [http.DefaultClient].
//
// Sources: Ollama's API, "Show model information"; LM Studio's REST API v0, "GET
// /api/v0/models/{model}".
func AbilitiesOf(ctx context.Context, client *http.Client, s Server, model string) (a Abilities, ok bool) {
	if client == nil {
		client = http.DefaultClient
	}
	base := strings.TrimSuffix(s.BaseURL, "/v1")
	var doc []byte
	switch s.Kind {
	case Ollama:
		body, _ := json.Marshal(map[string]string{"model": model}) // a string can always be written
		doc, ok = answer(ctx, client, http.MethodPost, base+"/api/show", bytes.NewReader(body))
	case LMStudio:
		doc, ok = answer(ctx, client, http.MethodGet, base+"/api/v0/models/"+url.PathEscape(model), nil)
	}
	if !ok {
		return a, false
	}
	return readAbilities(doc)
}

// readAbilities reads what both programs answer: a list of capabilities, in words of their
// own.
func readAbilities(doc []byte) (a Abilities, ok bool) {
	var model struct {
		Type         string
		Capabilities *[]string
	}
	if json.Unmarshal(doc, &model) != nil || model.Capabilities == nil {
		return a, false
	}
	has := func(name string) bool { return slices.Contains(*model.Capabilities, name) }
	return Abilities{Tools: has("tools") || has("tool_use"), Vision: has("vision") || model.Type == "vlm"}, true
}
