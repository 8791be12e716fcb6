package openai

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"regexp"
	"strings"
)

// Patch changes a finished request. The zero value changes nothing.
type Patch struct {
	// URL replaces the URL unless it is empty.
	URL string `json:"url,omitempty" yaml:"url,omitempty"`

	// Body is a JSON merge patch (RFC 7396): objects merge, nil deletes a member,
	// anything else replaces.
	Body map[string]any `json:"body,omitempty" yaml:"body,omitempty"`

	// Headers sets the fields with a string and removes those with nil; other
	// values are ignored. Names are case-insensitive.
	Headers map[string]any `json:"headers,omitempty" yaml:"headers,omitempty"`
}

// PatchRule is a patch for the models whose names match.
type PatchRule struct {
	Pattern string // regular expression for the whole name, as the configuration has it
	Patch   Patch
}

// PatchRules are rules in the order in which they are tried.
type PatchRules []PatchRule

// Patches are the rules of a client. The first rule whose pattern matches applies,
// and no other. Patterns that are no regular expression are skipped.
type Patches struct {
	ChatCompletions PatchRules
	Embeddings      PatchRules
	Rerank          PatchRules
}

// UnmarshalJSON reads an object of patterns and patches and keeps its order.
func (r *PatchRules) UnmarshalJSON(data []byte) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	open, err := dec.Token()
	if err != nil {
		return err
	}
	if open == nil {
		return nil // null: no rules
	}
	if open != json.Delim('{') {
		return errors.New("patch rules: want an object of patterns and patches")
	}
	rules := PatchRules{}
	for dec.More() {
		pattern, err := dec.Token()
		if err != nil {
			return err
		}
		rule := PatchRule{Pattern: pattern.(string)} // a name: the decoder allows nothing else
		if err := dec.Decode(&rule.Patch); err != nil {
			return fmt.Errorf("patch rule %q: %w", rule.Pattern, err)
		}
		rules = append(rules, rule)
	}
	*r = rules
	return nil
}

// Check returns an error that names every pattern that is no regular expression,
// nil if there is none.
func (r PatchRules) Check() error {
	var errs []error
	for _, rule := range r {
		if _, err := compilePattern(rule.Pattern); err != nil {
			errs = append(errs, fmt.Errorf("patch rule %q: %w", rule.Pattern, err))
		}
	}
	return errors.Join(errs...)
}

func compilePattern(p string) (*regexp.Regexp, error) {
	if _, err := regexp.Compile(p); err != nil {
		return nil, err // of the pattern as the user wrote it
	}
	return regexp.Compile("^(?:" + p + ")$")
}

// operation is one of the three calls of the wire format.
type operation string

const (
	opChat       operation = "chat completions"
	opEmbeddings operation = "embeddings"
	opRerank     operation = "rerank"
)

// patcher finds the patch of a model.
type patcher map[operation][]compiledRule

type compiledRule struct {
	pattern *regexp.Regexp
	patch   Patch
}

// compile leaves out what does not compile and says so to log.
func compile(p Patches, client string, log *slog.Logger) patcher {
	c := make(patcher)
	for op, rules := range map[operation]PatchRules{opChat: p.ChatCompletions, opEmbeddings: p.Embeddings, opRerank: p.Rerank} {
		for _, r := range rules {
			re, err := compilePattern(r.Pattern)
			if err != nil {
				log.Warn("patch rule skipped", "client", client, "api", string(op), "pattern", r.Pattern, "error", err)
				continue
			}
			c[op] = append(c[op], compiledRule{re, r.Patch})
		}
	}
	return c
}

func (p patcher) find(op operation, model string) Patch {
	for _, r := range p[op] {
		if r.pattern.MatchString(model) {
			return r.patch
		}
	}
	return Patch{}
}

// mergeBody returns the JSON object body with patch merged into it.
func mergeBody(body []byte, patch map[string]any) ([]byte, error) {
	if len(patch) == 0 {
		return body, nil
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber() // a float64 would change large integers
	var target any
	if err := dec.Decode(&target); err != nil {
		return nil, err
	}
	return encode(merge(target, patch))
}

// merge is the algorithm of RFC 7396, section 2. It may change target, and never
// patch.
func merge(target, patch any) any {
	members, ok := patch.(map[string]any)
	if !ok {
		return patch
	}
	object, ok := target.(map[string]any)
	if !ok {
		object = make(map[string]any)
	}
	for name, value := range members {
		if value == nil {
			delete(object, name)
			continue
		}
		object[name] = merge(object[name], value)
	}
	return object
}

// apply sets and removes header fields, and returns the names that it has set.
func (p Patch) apply(h http.Header) []string {
	var set []string
	for name, value := range p.Headers {
		switch v := value.(type) {
		case string:
			h.Set(name, v)
			set = append(set, name)
		case nil:
			h.Del(name)
			if strings.EqualFold(name, "User-Agent") {
				h.Set(name, "") // otherwise net/http adds its own
			}
		}
	}
	return set
}
