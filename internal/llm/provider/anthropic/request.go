package anthropic

import (
	"encoding/json"

	"loki/internal/llm/chat"
	"loki/internal/llm/provider"
	"loki/internal/llm/provider/normalize"
	"loki/internal/llm/provider/wire"
)

// exchange is one request in the API's form, with what is needed if it is rejected.
type exchange struct {
	params body
	model  string // the real name
	stream bool
	effort provider.Effort // that it asks for
	form   form            // how it asks for thinking
	blocks bool            // it holds thinking blocks
	format bool            // it asks for the form of the reply
}

// newExchange puts req for m into the words of d. The error is of kind [provider.Invalid].
func newExchange(req provider.Request, m wire.Model, d dialect) (*exchange, error) {
	t, err := translate(req.Messages, !d.noBlocks)
	if err != nil {
		return nil, err
	}
	x := &exchange{model: m.RealName, stream: req.Stream, blocks: t.blocks}
	x.params.Model = m.RealName
	x.params.Messages = t.messages
	if t.system != "" {
		x.params.System = []content{textOf(t.system)}
	}
	for _, tool := range req.Tools {
		x.params.Tools = append(x.params.Tools, declaration(tool))
	}
	_, patched := m.Patch.Body.Get("thinking")
	if patched {
		d.rejected |= adaptive | budget | disabled // what the patch asks for is enough
	}
	x.think(req, m.Efforts, d, t.thoughtless)
	if !x.thinks() {
		if req.Temperature != nil && !d.noTemperature {
			x.params.Temperature = req.Temperature
		}
		if req.TopP != nil && !d.noTopP {
			x.params.TopP = req.TopP
		}
	}
	x.params.StopSequences = normalize.Stops(req, len(req.Stop))
	if req.Choice.Required && !x.thinks() { // which goes with no choice
		x.params.ToolChoice = &choice{Type: "any"}
		if name := req.Choice.Name; name != "" {
			x.params.ToolChoice = &choice{Type: "tool", Name: name}
		}
	}
	if shape, ok := normalize.ClaudeFormat(req.Format); ok && !d.noFormat && takesFormat(m.RealName) {
		x.output().Format = &outputFormat{formatType, shape}
		x.format = true
	}
	if !d.noCache && !m.NoCache && provider.GoesOn(req) {
		markForCache(&x.params)
	}
	return x, nil
}

// output returns what x says of the reply.
func (x *exchange) output() *outputConfig {
	if x.params.OutputConfig == nil {
		x.params.OutputConfig = new(outputConfig)
	}
	return x.params.OutputConfig
}

const formatType = "json_schema"

// takesFormat reports whether a model is known to take the form of a reply: Claude does from
// 4.5 on.
func takesFormat(model string) bool {
	major, minor, ok := normalize.ClaudeVersion(model)
	return ok && (major < 0 || major > 4 || major == 4 && minor >= 5)
}

func declaration(t chat.Tool) tool {
	schema := t.Parameters
	if !normalize.HasMembers(schema) {
		schema = json.RawMessage(emptySchema)
	}
	return tool{Name: t.Name, Description: t.Description, InputSchema: schema}
}

// emptySchema is the schema of a tool without parameters.
const emptySchema = `{"type":"object","properties":{},"required":[]}`

// cachedMessages is how many of the user's last messages are marked for the cache: the
// older mark finds what the previous request has written, the newer one writes for the
// next. With tools and system prompt this makes the four marks that the API allows.
const cachedMessages = 2

// markForCache marks where prefixes of the request end that will come again.
func markForCache(p *body) {
	mark := &ephemeral{"ephemeral"}
	if n := len(p.Tools); n > 0 {
		p.Tools[n-1].Cache = mark
	}
	if n := len(p.System); n > 0 {
		p.System[n-1].Cache = mark
	}
	left := cachedMessages
	for i := len(p.Messages) - 1; i >= 0 && left > 0; i-- {
		m := p.Messages[i]
		if m.Role == userRole {
			m.Content[len(m.Content)-1].Cache = mark
			left--
		}
	}
}
