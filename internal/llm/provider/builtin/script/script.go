// Package script answers model requests from a file of rules.
//
// A rule file is a YAML mapping of a list of rules and a default. A rule has
// conditions, which say when it applies, and an answer: text, tool calls or a
// failure. A request is answered by the first rule whose conditions all hold.
// [Parse] reads a file and rejects whatever it does not understand, so that a
// mistyped rule cannot pass for one that did not apply.
package script

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"loki/internal/llm/chat"
	"loki/internal/llm/provider"
)

// File is a parsed rule file. It counts how often each of its rules has
// answered; its methods may be called from several goroutines.
type File struct {
	name  string
	rules []rule // the default is last

	mu   sync.Mutex
	used []int // guarded by mu: how often rule i has answered
}

// rule is one entry of a file.
type rule struct {
	line   int
	when   conditions
	times  int  // how often the rule may answer; 0 means always
	always bool // there is neither a condition nor a number of times
	answer answer
}

// Answer is what a rule answers to one query.
type Answer struct {
	Reasoning string
	Text      string
	Calls     []chat.ToolCall // an ID is empty if the rule gives none

	Chunk      int           // characters per chunk of Reasoning and Text; 0 means word by word
	Delay      time.Duration // before the first chunk
	ChunkDelay time.Duration // between chunks

	Usage Usage
	Stop  chat.StopReason // empty if the rule gives none
	Fail  *Failure        // nil if the reply is complete
}

// Usage is the token counts that a rule gives; nil means that it does not.
type Usage struct {
	Input, CachedInput, Output, Reasoning *int
}

// Failure is how a reply fails.
type Failure struct {
	Err         provider.Error
	AfterChunks int // how many chunks of a streamed reply come first
}

// Answer returns the answer of the first rule that applies to q, and counts it. It
// is an error that none does.
func (f *File) Answer(q Query) (Answer, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var spent []string // rules that would apply if they had not answered so often
	for i, r := range f.rules {
		groups, ok := r.when.hold(q)
		switch {
		case !ok:
		case r.times > 0 && f.used[i] >= r.times:
			spent = append(spent, fmt.Sprintf("the rule of line %d has answered %d of %d times", r.line, f.used[i], r.times))
		default:
			f.used[i]++
			return r.answer.fill(scope{query: q, groups: groups}), nil
		}
	}
	reason := ""
	if len(spent) > 0 {
		reason = ": " + strings.Join(spent, ", ")
	}
	return Answer{}, fmt.Errorf("rule file %s: no rule applies to %s%s", f.name, q, reason)
}
