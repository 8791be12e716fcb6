package bedrock

import (
	"strings"

	"loki/internal/llm/provider/normalize"
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
		if major, minor, _ := normalize.ClaudeVersion(name); major >= 0 && f.claude == 0 {
			f.claude = version(100*major + minor)
		}
		f.nova = f.nova || strings.Contains(name, "amazon.nova")
	}
	return f
}

// thinks reports whether the model reasons if it is asked to.
func (f family) thinks() bool { return f.claude >= 307 }

// adaptive reports whether the model decides itself how long it thinks. From 4.7 on
// it rejects budgets.
func (f family) adaptive() bool { return f.claude >= 406 }

// thinksByItself reports whether the model thinks adaptively unless a request says otherwise.
func (f family) thinksByItself() bool { return f.claude >= 500 }

// caches reports whether the model knows cache points.
func (f family) caches() bool { return f.claude >= 307 || f.nova }

// cachesTools reports whether there may be a cache point behind the tools.
func (f family) cachesTools() bool { return f.claude >= 307 }

// takesStatus reports whether the model knows the status of a tool result.
func (f family) takesStatus() bool { return f.claude > 0 || f.nova }
