package config

import (
	"fmt"
	"strings"
)

// knowledgeProblem returns the first setting of knowledge bases that cannot be used, and why. The
// key is empty if there is none.
func (c *Config) knowledgeProblem() (key, problem string) {
	if n := c.RAGThreshold; n != nil && (*n < 0 || *n > 1) {
		return "rag_threshold", fmt.Sprintf("want a number from 0 to 1, not %g", *n)
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
