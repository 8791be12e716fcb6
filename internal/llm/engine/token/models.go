package token

import "strings"

// Tokens of one image where the provider says how it counts. Sizes are not known
// here, so these are the counts of an image of 1024 x 1024 pixels in full detail.
const (
	imageOpenAI    = 765  // 85 for the image and 170 for each of four tiles
	imageAnthropic = 1400 // the area in pixels divided by 750
	imageGemini    = 1032 // 258 for each of four tiles
)

// families maps the beginnings of models' names to how they count. The first that
// fits wins, so longer beginnings go first.
var families = []struct {
	prefix  string
	counter Counter
}{
	{"gpt-4o", Counter{o200k, imageOpenAI}},
	{"gpt-4.1", Counter{o200k, imageOpenAI}},
	{"gpt-4.5", Counter{o200k, imageOpenAI}},
	{"chatgpt-4o", Counter{o200k, imageOpenAI}},
	{"gpt-5", Counter{o200k, imageOpenAI}},
	{"gpt-oss", Counter{o200k, 0}},
	{"o1", Counter{o200k, imageOpenAI}},
	{"o3", Counter{o200k, imageOpenAI}},
	{"o4", Counter{o200k, imageOpenAI}},
	{"gpt-4", Counter{cl100k, imageOpenAI}},
	{"gpt-3.5", Counter{cl100k, 0}},
	{"gpt-35", Counter{cl100k, 0}}, // as Azure spells it
	{"text-embedding-3", Counter{cl100k, 0}},
	{"text-embedding-ada-002", Counter{cl100k, 0}},
	{"claude", Counter{"", imageAnthropic}},
	{"gemini", Counter{"", imageGemini}},
}

// For returns the counter for a model, by the provider's own name of it or by its id
// "client:model". The name may be that of a fine-tuned model ("ft:gpt-4o:acme") and
// have the maker in front, as routers spell it ("openai/gpt-4o"). The counter of an
// unknown model is the zero value. Nothing is loaded yet.
func For(model string) Counter {
	name := strings.ToLower(model)
	if i := strings.LastIndexByte(name, '/'); i >= 0 {
		name = name[i+1:]
	}
	if _, rest, ok := strings.Cut(name, "anthropic."); ok { // Bedrock: us.anthropic.claude-...
		name = rest
	}
	if c, ok := family(strings.TrimPrefix(name, "ft:")); ok {
		return c
	}
	_, name, _ = strings.Cut(name, ":")
	c, _ := family(strings.TrimPrefix(name, "ft:"))
	return c
}

func family(name string) (Counter, bool) {
	for _, f := range families {
		rest, ok := strings.CutPrefix(name, f.prefix)
		// "o1" and "o1-mini" are of one family, but "o100" is not.
		if ok && (rest == "" || !isAlnum(rest[0])) {
			return f.counter, true
		}
	}
	return Counter{}, false
}

func isAlnum(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'z'
}
