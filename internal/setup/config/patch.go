package config

import (
	"iter"
	"regexp"
	"slices"

	"loki/internal/base/fault"
	"loki/internal/base/value/yamldoc"
	"loki/internal/llm/provider/wire"
)

// PatchRules returns the client's patches for requests of an API, in the order in
// which they are tried: the first whose pattern matches the whole name of the model
// applies, and no other. The environment variable LOKI_PATCH_<CLIENT NAME>_<API>, or LLM_PATCH_...,
// a JSON object of patterns and patches, replaces those of the file; one that cannot be
// read is an error with code Config. References to secrets are replaced, or are an error,
// as in [Client.Field].
func (c *Client) PatchRules(env Env, api wire.API) ([]wire.PatchRule, error) {
	rules, source := c.Patch[api], "patch."+string(api)
	if variable, text := env.first(c.patchVariables(api)); text != "" {
		source = fromVariable + variable
		var err error
		if rules, err = parsePatchRules(source, text); err != nil {
			return nil, err
		}
	}
	rules = slices.Clone(rules)
	for i := range rules {
		patch, err := expandPatch(&rules[i].Patch, c.secrets)
		if err != nil {
			return nil, c.secretError(source, source, err)
		}
		rules[i].Patch = *patch
	}
	return rules, nil
}

// patchVariables returns the names of the variables that may hold patches. The first that is set counts.
func (c *Client) patchVariables(api wire.API) []string {
	name := c.Name + "_" + string(api)
	return slices.Concat(Variables("LOKI_PATCH_"+name), Variables("LLM_PATCH_"+name))
}

// patchVariableWarnings returns what in the variables that [Client.PatchRules] reads has no
// effect. What cannot be read at all is an error there.
func (c *Client) patchVariableWarnings(env Env) []*yamldoc.Problem {
	var warnings []*yamldoc.Problem
	for _, api := range wire.APIs() {
		variable, text := env.first(c.patchVariables(api))
		doc, err := yamldoc.Parse(fromVariable+variable, []byte(text), yamldoc.HideSource)
		if text == "" || err != nil {
			continue
		}
		decodePatchRules(doc.Root().Map())
		for _, w := range doc.Warnings() {
			w.Pos = yamldoc.Pos{} // in a value there is one line
			warnings = append(warnings, w)
		}
	}
	return warnings
}

// parsePatchRules reads the JSON object of patterns and patches that source holds.
// JSON is YAML, so there is one reader for both.
func parsePatchRules(source, text string) ([]wire.PatchRule, error) {
	doc, err := yamldoc.Parse(source, []byte(text), yamldoc.HideSource)
	if err != nil {
		return nil, configError(err)
	}
	rules := decodePatchRules(doc.Root().Map())
	return rules, configError(doc.Err())
}

// decodePatchRules reads a mapping of patterns to patches. A nil m has none.
func decodePatchRules(m *yamldoc.Map) []wire.PatchRule {
	var rules []wire.PatchRule
	for entry := range m.All() {
		if _, err := regexp.Compile(entry.Key); err != nil {
			p := entry.Node.Warnf("the pattern %q is not a regular expression and matches nothing", entry.Key)
			p.Hint = err.Error()
		}
		if entry.Node.Kind() != yamldoc.Null {
			rules = append(rules, wire.PatchRule{Pattern: entry.Key, Patch: *wire.ReadPatch(entry.Node)})
		}
	}
	return rules
}

// patches ranges over all patches of c and its models, with where each is from.
func (c *Client) patches() iter.Seq2[string, *wire.Patch] {
	return func(yield func(string, *wire.Patch) bool) {
		for _, api := range wire.APIs() {
			for _, rule := range c.Patch[api] {
				if !yield("patch."+string(api), &rule.Patch) {
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

// configError turns the problems of a document into one error with code Config with
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
