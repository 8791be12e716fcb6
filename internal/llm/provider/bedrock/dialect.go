package bedrock

import (
	"loki/internal/llm/provider/normalize"
	"loki/internal/llm/provider/wire"
)

// dialect is what a model does not take of that which others of its family do. The zero
// value takes everything.
type dialect struct {
	noCache    bool // no cache points
	noSampling bool // no temperature and no top_p
	noDisplay  bool // no wish for the words of thoughts
	noEffort   bool // no effort beside adaptive thinking
	noThinking bool
	noFormat   bool // no form of the reply
}

// adapt returns the dialect that a model may take after it has rejected c with msg, in
// lower case; ok reports whether there is one. It always differs from d.
func (d dialect) adapt(msg string, c conversation) (next dialect, ok bool) {
	says := func(words ...string) bool { return normalize.Says(msg, words...) }
	old := d
	t := c.asked.Thinking
	switch {
	case c.output != nil && !says("effort", "thinking") && normalize.RefusesFormat(msg):
		d.noFormat = true
	case !says("support", "deprecated", "not permitted", "not allowed", "cannot", "may only be set", "not available", "input tag", "extraneous key"):
		// A value that is wrong is for the user to correct.
	case says("cachepoint", "cache_control", "prompt caching"):
		d.noCache = d.noCache || c.cached
	case says("temperature", "top_p", "topp"):
		d.noSampling = d.noSampling || c.inference.Temperature != nil || c.inference.TopP != nil
	case t == nil:
	case says("display"):
		d.noDisplay = d.noDisplay || t.Display != ""
	case says("effort", "output_config") && !says("thinking"):
		d.noEffort = d.noEffort || c.asked.OutputConfig != nil
	case says("thinking", "additionalmodelrequestfields", "adaptive"):
		d.noThinking = true
	}
	return d, d != old
}

// of returns d for a model as the configuration has it. The thinking of its patch says it
// all.
func (d dialect) of(m wire.Model) dialect {
	d.noCache = d.noCache || m.NoCache
	fields, _ := m.Patch.Body.Get("additionalModelRequestFields")
	if _, ok := fields.AsObject().Get("thinking"); ok {
		d.noThinking = true
	}
	return d
}
