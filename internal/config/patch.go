package config

import (
	"iter"
	"regexp"
	"slices"

	"loki/internal/catalog"
	"loki/internal/fault"
	"loki/internal/yamldoc"
)

// API is one of the requests that a client can be patched for.
type API string

// The APIs, as config.yaml calls them.
const (
	ChatCompletions API = "chat_completions"
	Embeddings      API = "embeddings"
	Rerank          API = "rerank"
)

// Patches are the patches of a client, by API.
type Patches map[API][]PatchRule

// PatchRule is a patch for the models whose whole name matches a pattern.
type PatchRule struct {
	Pattern string // a regular expression in Go's syntax
	Patch   *catalog.Patch
}

// PatchRules returns the client's patches for requests of an API, in the order in
// which they are tried: the first whose pattern matches the whole name of the model
// applies, and no other. The environment variable LOKI_PATCH_<CLIENT NAME>_<API>,
// a JSON object of patterns and patches, replaces those of the file; one that cannot be
// read is an error of code Config. References to secrets are replaced, or are an error,
// as in [Client.Field].
func (c *Client) PatchRules(env Env, api API) ([]PatchRule, error) {
	rules, source := c.Patch[api], "patch."+string(api)
	for _, variable := range variables("LOKI_PATCH_" + c.Name + "_" + string(api)) {
		if text := env.Get(variable); text != "" {
			source = "environment variable " + variable
			var err error
			if rules, err = parsePatchRules(source, text); err != nil {
				return nil, err
			}
			break
		}
	}
	rules = slices.Clone(rules)
	for i := range rules {
		var err error
		if rules[i].Patch, err = expandPatch(rules[i].Patch, c.secrets); err != nil {
			return nil, c.secretError(source, source, err)
		}
	}
	return rules, nil
}

// patchVariableWarnings returns what in the variables that [Client.PatchRules] reads has no
// effect. What cannot be read at all is an error there.
func (c *Client) patchVariableWarnings(env Env) []*yamldoc.Problem {
	var warnings []*yamldoc.Problem
	for _, api := range apis() {
		for _, variable := range variables("LOKI_PATCH_" + c.Name + "_" + string(api)) {
			text := env.Get(variable)
			if text == "" {
				continue
			}
			doc, err := yamldoc.Parse("environment variable "+variable, []byte(text), yamldoc.HideSource)
			if err != nil {
				break
			}
			decodePatchRules(doc.Root().Map())
			for _, w := range doc.Warnings() {
				w.Pos = yamldoc.Pos{} // in a value there is one line
				warnings = append(warnings, w)
			}
			break
		}
	}
	return warnings
}

// parsePatchRules reads the JSON object of patterns and patches that source holds.
// JSON is YAML, so there is one reader for both.
func parsePatchRules(source, text string) ([]PatchRule, error) {
	doc, err := yamldoc.Parse(source, []byte(text), yamldoc.HideSource)
	if err != nil {
		return nil, configError(err)
	}
	rules := decodePatchRules(doc.Root().Map())
	return rules, configError(doc.Err())
}

// decodePatchRules reads a mapping of patterns to patches. A nil m has none.
func decodePatchRules(m *yamldoc.Map) []PatchRule {
	var rules []PatchRule
	for entry := range m.All() {
		if _, err := regexp.Compile(entry.Key); err != nil {
			p := entry.Node.Warnf("the pattern %q is not a regular expression and matches nothing", entry.Key)
			p.Hint = err.Error()
		}
		if entry.Node.Kind() != yamldoc.Null {
			rules = append(rules, PatchRule{entry.Key, catalog.DecodePatch(entry.Node)})
		}
	}
	return rules
}

// patches ranges over all patches of c and its models, with where each is from.
func (c *Client) patches() iter.Seq2[string, *catalog.Patch] {
	return func(yield func(string, *catalog.Patch) bool) {
		for _, api := range apis() {
			for _, rule := range c.Patch[api] {
				if !yield("patch."+string(api), rule.Patch) {
					return
				}
			}
		}
		for _, m := range c.Models {
			if m.Patch != nil && !yield("the patch of model "+m.Name, m.Patch) {
				return
			}
		}
	}
}

func apis() []API { return []API{ChatCompletions, Embeddings, Rerank} }

// configError turns the problems of a document into one error of code Config with
// the first hint there is; nil stays nil.
func configError(err error) error {
	if err == nil {
		return nil
	}
	f := &fault.Error{Code: fault.Config, Err: err}
	for _, p := range yamldoc.AsProblems(err) {
		if f.Hint = p.Hint; f.Hint != "" {
			break
		}
	}
	return f
}
