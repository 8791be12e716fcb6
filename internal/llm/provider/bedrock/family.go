package bedrock

import (
	"strconv"
	"strings"

	"loki/internal/llm/provider"
)

// family is what the name of a model says about its abilities. Ids such as
// us.anthropic.claude-opus-4-6-v1, with or without a region or the start of an ARN,
// are understood; the id of an application inference profile says nothing, but then
// the name that the configuration gives the model may.
type family struct {
	claude version // 0.0 if it is none
	nova   bool
}

// version is major times 100 plus minor.
type version int

func familyOf(names ...string) family {
	var f family
	for _, name := range names {
		name = strings.ToLower(name)
		if _, id, ok := strings.Cut(name, "claude-"); ok && f.claude == 0 {
			f.claude = claudeVersion(id)
		}
		f.nova = f.nova || strings.Contains(name, "amazon.nova")
	}
	return f
}

// claudeVersion reads the first number of id, and a second one behind it unless
// that is a date: 3-7-sonnet-20250219 and sonnet-4-20250514 are 3.7 and 4.0.
func claudeVersion(id string) version {
	words := strings.FieldsFunc(id, func(r rune) bool { return r == '-' || r == '.' || r == ':' || r == '@' })
	for i, w := range words {
		major, ok := smallNumber(w)
		if !ok {
			continue
		}
		minor := 0
		if i+1 < len(words) {
			minor, _ = smallNumber(words[i+1])
		}
		return version(100*major + minor)
	}
	return 0
}

func smallNumber(s string) (int, bool) {
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 || n > 99 {
		return 0, false
	}
	return n, true
}

// thinks reports whether the model reasons if it is asked to.
func (f family) thinks() bool { return f.claude >= 307 }

// adaptive reports whether the model decides itself how long it thinks. From 4.7 on
// it rejects budgets.
func (f family) adaptive() bool { return f.claude >= 406 }

// thinksByItself reports whether the model thinks adaptively unless a request says otherwise.
func (f family) thinksByItself() bool { return f.claude >= 500 }

// efforts returns those of an adaptive model: the list that is known of it, or what follows from its
// version.
func (f family) efforts(list []provider.Effort) []provider.Effort {
	if list != nil {
		return list
	}
	list = []provider.Effort{provider.NoEffort, provider.LowEffort, provider.MediumEffort, provider.HighEffort, provider.MaxEffort}
	if f.claude >= 407 {
		list = append(list, provider.XHighEffort)
	}
	return list
}

// caches reports whether the model knows cache points.
func (f family) caches() bool { return f.claude >= 307 || f.nova }

// cachesTools reports whether there may be a cache point behind the tools.
func (f family) cachesTools() bool { return f.claude >= 307 }

// takesStatus reports whether the model knows the status of a tool result.
func (f family) takesStatus() bool { return f.claude > 0 || f.nova }
