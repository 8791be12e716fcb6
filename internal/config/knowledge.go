package config

import (
	"fmt"
	"slices"
	"strings"
)

// knowledgeProblem returns the first setting of knowledge bases that cannot be used, and why. The
// key is empty if there is none.
func (c *Config) knowledgeProblem() (key, problem string) {
	for _, one := range []struct {
		key  string
		text *string
		of   []string
	}{{"rag_chunker", c.RAGChunker, []string{"", "markdown"}}, {"rag_quantization", c.RAGQuantization, []string{"", "int8"}}} {
		if one.text != nil && !slices.Contains(one.of, *one.text) {
			return one.key, fmt.Sprintf("want %s, or nothing, not %q", one.of[1], *one.text)
		}
	}
	for _, part := range []struct {
		key    string
		number *float64
	}{{"rag_threshold", c.RAGThreshold}, {"rag_diversity", c.RAGDiversity}} {
		if n := part.number; n != nil && (*n < 0 || *n > 1) {
			return part.key, fmt.Sprintf("want a number from 0 to 1, not %g", *n)
		}
	}
	if t := c.RAGTemplate; t != nil && *t != "" {
		for _, placeholder := range []string{"__INPUT__", "__CONTEXT__"} {
			if !strings.Contains(*t, placeholder) {
				return "rag_template", fmt.Sprintf("the template lacks %s: without it the model gets nothing of %s", placeholder,
					map[string]string{"__INPUT__": "the question", "__CONTEXT__": "what was found"}[placeholder])
			}
		}
	}
	return "", ""
}
