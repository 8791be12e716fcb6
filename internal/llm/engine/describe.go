package engine

import (
	"crypto/sha256"
	"fmt"
	"strings"

	"loki/internal/base/value"
	"loki/internal/llm/chat"
)

// description is the request of a model's step as records keep it: what is new since the call before, without
// what depends on the provider. The settings, tools and schema are those of the first call of a conversation.
type description struct {
	Model string `json:"model"` // id
	chat.Sampling
	Tools    []string      `json:"tools,omitempty"`
	Schema   *value.Value  `json:"schema,omitempty"`
	Messages []sentMessage `json:"messages"`
}

// sentMessage is a message in a description.
type sentMessage struct {
	Role   chat.Role  `json:"role"`
	Tool   string     `json:"tool,omitempty"` // whose result it is
	Failed bool       `json:"failed,omitempty"`
	Text   string     `json:"text,omitempty"`
	Images []string   `json:"images,omitempty"` // addresses, or digests of their content
	Calls  []sentCall `json:"calls,omitempty"`
}

type sentCall struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// description returns what the next call of c sends.
func (c call) description() any {
	d := description{Model: c.model.ID, Messages: []sentMessage{}}
	if c.known == 0 {
		d.Sampling = c.req.Sampling.Over(c.rc.Sampling)
		if c.req.Form != nil {
			schema := c.req.Form.Value()
			d.Schema = &schema
		}
		if c.model.SupportsTools {
			for _, t := range c.tools() {
				d.Tools = append(d.Tools, t.Name)
			}
		}
	}
	for _, m := range c.messages[min(c.known, len(c.messages)):] {
		sent := sentMessage{Role: m.Role, Tool: m.ToolName, Failed: m.Failed, Text: m.Text()}
		for _, p := range m.Parts {
			if p.Type == chat.ImagePart {
				sent.Images = append(sent.Images, imageName(p.URL))
			}
		}
		for _, call := range m.ToolCalls {
			sent.Calls = append(sent.Calls, sentCall{call.Name, call.Arguments})
		}
		d.Messages = append(d.Messages, sent)
	}
	return d
}

// imageName returns the address of an image, or the digest of one whose content is in its URL.
func imageName(url string) string {
	if !strings.HasPrefix(url, "data:") {
		return url
	}
	return fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(url)))
}
