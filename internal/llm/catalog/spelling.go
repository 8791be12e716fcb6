package catalog

import (
	"strings"

	"loki/internal/base/text"
)

// spelling is the name of a model in its parts. Joined in order they are the name.
type spelling struct {
	region  string // of Bedrock, with its point: "eu."
	base    string // "anthropic.claude-sonnet-4-5"
	date    string // of a snapshot, with what is before it: "-20250929", "@20250929", "-2024-08-06"
	version string // of Bedrock: "-v1:0"
	alias   string // ":thinking" and its like
}

// There are as few alternatives as possible: all other text belongs to the base.
var (
	regional = text.Regexp(`^(?:us|us-gov|eu|apac|jp|au|ca|sa|global)\.`)
	ending   = text.Regexp(`^(.+?)([-@](?:20\d{6}|20\d\d-\d\d-\d\d))?(-v\d+(?::\d+)?)?(:(?:thinking|no-thinking|instruct))?$`)
)

func spell(name string) spelling {
	s := spelling{region: regional().FindString(name)}
	if parts := ending().FindStringSubmatch(strings.TrimPrefix(name, s.region)); parts != nil {
		s.base, s.date, s.version, s.alias = parts[1], parts[2], parts[3], parts[4]
	}
	return s
}

// apiName returns the name that s is sent as.
func (s spelling) apiName() string { return s.region + s.base + s.date + s.version }

// fills reports whether s, which a user wrote, names the model that listed is the full name
// of: it is the same but for parts that one of them leaves out, and for the region.
func (s spelling) fills(listed spelling) bool {
	sameBase := s.base == listed.base
	if _, name, vendor := strings.Cut(listed.base, "."); vendor && listed.region != "" {
		sameBase = sameBase || s.base == name
	}
	return s.base != "" && sameBase && s.alias == listed.alias &&
		(s.date == listed.date || s.date == "" || listed.date == "") &&
		(s.version == listed.version || s.version == "" || listed.version == "")
}

// similar returns the model of c that an unlisted name means: a listed one without its
// date, with a date, or in another region of Bedrock. Of several the newest counts, and one
// of the same region before others. What it costs is unknown where that may differ.
func (c Client) similar(name string, t Type) (Model, bool) {
	asked := spell(name)
	var best Model
	var as spelling
	found := false
	for _, m := range c.models() {
		listed := spell(m.Name)
		if m.Type != t || !asked.fills(listed) {
			continue
		}
		nearer := (listed.region == asked.region) == (as.region == asked.region) && listed.date > as.date ||
			listed.region == asked.region && as.region != asked.region
		if !found || nearer {
			best, as, found = m, listed, true
		}
	}
	if !found {
		return Model{}, false
	}
	sent := spell(best.APIName())
	if asked.region != "" {
		sent.region = asked.region
	} else if asked.base == as.base {
		sent.region = "" // the model itself, in the client's own region
	}
	if asked.date != "" {
		sent.date = asked.date
	}
	if asked.version != "" {
		sent.version = asked.version
	}
	if sent.region != as.region || asked.date != as.date && asked.date != "" {
		best.InputPrice, best.OutputPrice, best.CachedInputPrice, best.CacheWritePrice = nil, nil, nil, nil
	}
	best.Name, best.RealName = name, sent.apiName()
	return best, true
}
