package bedrock

import (
	"cmp"
	"encoding/json"
	"math"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime/document"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime/types"

	"loki/internal/llm/chat"
	"loki/internal/llm/provider"
	"loki/internal/llm/provider/normalize"
)

// conversation is what Converse and ConverseStream have in common.
type conversation struct {
	system    []types.SystemContentBlock
	messages  []types.Message
	inference types.InferenceConfiguration
	tools     *types.ToolConfiguration
	fields    document.Interface // nil for none
	output    *types.OutputConfig

	asked  additional      // what fields are made of
	effort provider.Effort // that is asked for
	cached bool            // there are cache points
}

// replyForm returns the form of the reply that req asks for, nil where the prompt has to
// do. Claude takes one from 4.5 on.
func replyForm(req provider.Request, f family) *types.OutputConfig {
	shape, ok := normalize.ClaudeFormat(req.Format)
	if !ok || f.claude < 405 {
		return nil
	}
	return &types.OutputConfig{TextFormat: &types.OutputFormat{
		Type: types.OutputFormatTypeJsonSchema,
		Structure: &types.OutputFormatStructureMemberJsonSchema{Value: types.JsonSchemaDefinition{
			Schema: aws.String(string(shape)), Name: aws.String(normalize.FormatName),
		}},
	}}
}

// newConversation puts req into the words of Converse, as far as d knows them. efforts are
// those of the model, nil if they are not known.
func newConversation(req provider.Request, f family, efforts []provider.Effort, d dialect) (conversation, error) {
	var c conversation
	b := messageBuilder{family: f}
	for i, m := range req.Messages {
		if m.Role == chat.System {
			c.system = append(c.system, systemBlocks(m)...)
			continue
		}
		b.add(m, i == len(req.Messages)-1)
	}
	if err := b.err(); err != nil {
		return conversation{}, err
	}
	c.messages = b.messages
	c.tools = toolConfiguration(req)
	if !d.noSampling {
		c.inference = types.InferenceConfiguration{Temperature: float(req.Temperature), TopP: float(req.TopP)}
	}
	c.inference.StopSequences = normalize.Stops(req, mostStops)
	if n := req.MaxOutputTokens; n > 0 {
		c.inference.MaxTokens = aws.Int32(int32(min(n, math.MaxInt32)))
	}
	c.think(req, f, efforts, d)
	if !d.noFormat {
		c.output = replyForm(req, f)
	}
	if provider.GoesOn(req) && !d.noCache && f.caches() {
		c.cached = true
		c.addCachePoints(f)
	}
	return c, nil
}

func float(f *float64) *float32 {
	if f == nil {
		return nil
	}
	return aws.Float32(float32(*f))
}

func systemBlocks(m chat.Message) []types.SystemContentBlock {
	var blocks []types.SystemContentBlock
	for _, p := range m.Parts {
		if p.Type == chat.TextPart && strings.TrimSpace(p.Text) != "" {
			blocks = append(blocks, &types.SystemContentBlockMemberText{Value: p.Text})
		}
	}
	return blocks
}

// toolDialect returns what of the declaration of a tool a model takes.
func toolDialect(f family) normalize.Dialect {
	if f.claude > 0 {
		return normalize.ClaudeTools()
	}
	return normalize.ConverseTools()
}

// withdrawn describes a tool that only the history names.
const withdrawn = "This tool is no longer available. Do not call it."

// toolConfiguration declares the tools of req, and further ones that its messages name. It returns
// nil if there are none.
func toolConfiguration(req provider.Request) *types.ToolConfiguration {
	var tools []types.Tool
	declared := make(map[string]bool)
	declare := func(name, description string, schema json.RawMessage) {
		if declared[name] {
			return
		}
		declared[name] = true
		tools = append(tools, &types.ToolMemberToolSpec{Value: types.ToolSpecification{
			Name: aws.String(name), Description: nonEmpty(description),
			InputSchema: &types.ToolInputSchemaMemberJson{Value: raw(schema)},
		}})
	}
	for _, t := range req.Tools {
		declare(t.Name, t.Description, t.Parameters)
	}
	if len(tools) == 0 {
		for _, m := range req.Messages {
			for _, call := range m.ToolCalls {
				declare(toolName(call.Name), withdrawn, json.RawMessage(`{"type":"object","properties":{}}`))
			}
		}
	}
	if tools == nil {
		return nil
	}
	configuration := &types.ToolConfiguration{Tools: tools}
	if name := req.Choice.Name; name != "" {
		configuration.ToolChoice = &types.ToolChoiceMemberTool{Value: types.SpecificToolChoice{Name: aws.String(name)}}
	} else if req.Choice.Required {
		configuration.ToolChoice = &types.ToolChoiceMemberAny{}
	}
	return configuration
}

// mostStops is how many texts at which it ends a request may have with each of the models.
const mostStops = 4

// nonEmpty returns nil for a text that Converse would reject.
func nonEmpty(s string) *string {
	if strings.TrimSpace(s) == "" {
		return nil
	}
	return &s
}

// minBudget is the least budget of thinking that Claude takes, in tokens.
const minBudget = 1024

// additional are the request fields that only Claude knows.
type additional struct {
	Thinking     *thinking     `json:"thinking,omitempty"`
	OutputConfig *outputConfig `json:"output_config,omitempty"`
}

type thinking struct {
	Type    string `json:"type"`
	Budget  int    `json:"budget_tokens,omitempty"`
	Display string `json:"display,omitempty"`
}

type outputConfig struct {
	Effort provider.Effort `json:"effort"`
}

// think asks a Claude model for the effort of req, and one that thinks by itself for the
// words of its thoughts. Thinking counts as output: of a limited output a budget gets at
// most half, and nothing if that is less than it takes.
func (c *conversation) think(req provider.Request, f family, efforts []provider.Effort, d dialect) {
	c.effort = req.Effort
	if !f.thinks() || d.noThinking {
		return
	}
	var fields additional
	switch budget := normalize.ThinkingBudget(req.Effort); {
	case f.adaptive() && (req.Effort != "" || f.thinksByItself()):
		if c.effort != "" {
			c.effort = c.effort.Nearest(normalize.ClaudeEfforts(efforts, f.claude >= 407))
		}
		switch {
		case c.effort == provider.NoEffort && f.thinksByItself():
			fields.Thinking = &thinking{Type: "disabled"}
		case c.effort == provider.NoEffort:
			return
		default:
			fields.Thinking = &thinking{Type: "adaptive", Display: "summarized"} // new models leave the words out unless asked
			if d.noDisplay {
				fields.Thinking.Display = ""
			}
			if c.effort != "" && !d.noEffort {
				fields.OutputConfig = &outputConfig{c.effort}
			}
		}
	case budget > 0 && !f.adaptive():
		if req.MaxOutputTokens > 0 {
			budget = min(budget, req.MaxOutputTokens/2)
		}
		if budget < minBudget {
			return
		}
		fields.Thinking = &thinking{Type: "enabled", Budget: budget}
	default:
		return
	}
	text, err := json.Marshal(fields)
	if err != nil {
		return // cannot happen: strings and numbers
	}
	c.fields, c.asked = raw(text), fields
	if fields.Thinking.Type != "disabled" {
		c.inference.Temperature, c.inference.TopP = nil, nil
	}
}

// notes returns what the model gets instead of the effort of req. A budget means its effort.
func (c *conversation) notes(req provider.Request, f family) []string {
	switch {
	case req.Effort == "" || !f.adaptive():
		return nil
	case c.asked.OutputConfig == nil && c.effort != provider.NoEffort:
		return []string{req.Effort.ReplacedNote("")}
	case c.effort != req.Effort:
		return []string{req.Effort.ReplacedNote(c.effort)}
	}
	return nil
}

// addCachePoints marks the ends of what stays the same from request to request.
func (c *conversation) addCachePoints(f family) {
	point := types.CachePointBlock{Type: types.CachePointTypeDefault}
	if len(c.system) > 0 {
		c.system = append(c.system, &types.SystemContentBlockMemberCachePoint{Value: point})
	}
	if c.tools != nil && f.cachesTools() {
		c.tools.Tools = append(c.tools.Tools, &types.ToolMemberCachePoint{Value: point})
	}
	last := len(c.messages) - 1
	if last < 0 || c.messages[last].Role != types.ConversationRoleUser {
		return
	}
	content := c.messages[last].Content
	// Nova takes a cache point in a message behind text only.
	if _, text := content[len(content)-1].(*types.ContentBlockMemberText); text || f.claude > 0 {
		c.messages[last].Content = append(content, &types.ContentBlockMemberCachePoint{Value: point})
	}
}

// toolName returns name in the characters that Converse takes. Models make names up,
// and one of them must not get the conversation rejected.
func toolName(name string) string {
	return cmp.Or(legalName(name, maxToolName), "unknown")
}
