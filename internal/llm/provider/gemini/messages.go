package gemini

import (
	"encoding/json"

	"loki/internal/llm/provider/wire"
)

// The messages of the API, as far as they are used. They hold JSON that is not ours,
// arguments, results and schemas, as it came: its keys are in an order that means
// something to models, and its integers may be larger than a float64 can tell apart.
//
// Source: https://ai.google.dev/api/generate-content

// generateRequest asks for a reply.
type generateRequest struct {
	Contents          []content        `json:"contents"`
	GenerationConfig  generationConfig `json:"generationConfig"`
	SystemInstruction *content         `json:"systemInstruction,omitempty"`
	Tools             []toolList       `json:"tools,omitempty"`
	ToolConfig        *toolConfig      `json:"toolConfig,omitempty"`
}

// toolConfig says which functions the model has to call one of.
type toolConfig struct {
	FunctionCallingConfig functionCallingConfig `json:"functionCallingConfig"`
}

type functionCallingConfig struct {
	Mode    string   `json:"mode"`
	Allowed []string `json:"allowedFunctionNames,omitempty"` // nil for all
}

// Roles of contents. Responses to calls are the user's.
const (
	userRole  = "user"
	modelRole = "model"
)

type content struct {
	Parts []part `json:"parts"`
	Role  string `json:"role"`
}

// part holds one of text and the pointers.
type part struct {
	Text             string            `json:"text,omitempty"`
	Thought          bool              `json:"thought,omitempty"` // Text is a thought
	InlineData       *blob             `json:"inlineData,omitempty"`
	FileData         *fileData         `json:"fileData,omitempty"`
	FunctionCall     *functionCall     `json:"functionCall,omitempty"`
	FunctionResponse *functionResponse `json:"functionResponse,omitempty"`
	ThoughtSignature string            `json:"thoughtSignature,omitempty"`  // base64
	GatewaySignature string            `json:"thought_signature,omitempty"` // the same as some gateways spell it; in replies only
}

type blob struct {
	Data     []byte `json:"data"`
	MIMEType string `json:"mimeType"`
}

type fileData struct {
	FileURI  string `json:"fileUri"`
	MIMEType string `json:"mimeType"`
}

type functionCall struct {
	Args json.RawMessage `json:"args,omitempty"`
	ID   string          `json:"id,omitempty"`
	Name string          `json:"name"`
}

type functionResponse struct {
	ID       string          `json:"id,omitempty"`
	Name     string          `json:"name"`
	Response json.RawMessage `json:"response"`
}

type generationConfig struct {
	MaxOutputTokens int             `json:"maxOutputTokens,omitempty"`
	Temperature     *float64        `json:"temperature,omitempty"`
	ThinkingConfig  *thinkingConfig `json:"thinkingConfig,omitempty"`
	TopP            *float64        `json:"topP,omitempty"`
	StopSequences   []string        `json:"stopSequences,omitempty"`
	Seed            *int64          `json:"seed,omitempty"`

	FrequencyPenalty float64 `json:"frequencyPenalty,omitempty"`
	PresencePenalty  float64 `json:"presencePenalty,omitempty"`

	ResponseMIMEType   string          `json:"responseMimeType,omitempty"`
	ResponseJSONSchema json.RawMessage `json:"responseJsonSchema,omitempty"`
}

type thinkingConfig struct {
	IncludeThoughts bool   `json:"includeThoughts,omitempty"`
	ThinkingBudget  *int   `json:"thinkingBudget,omitempty"` // in tokens
	ThinkingLevel   string `json:"thinkingLevel,omitempty"`
}

type toolList struct {
	FunctionDeclarations []functionDeclaration `json:"functionDeclarations"`
}

type functionDeclaration struct {
	Description          string          `json:"description,omitempty"`
	Name                 string          `json:"name"`
	ParametersJSONSchema json.RawMessage `json:"parametersJsonSchema,omitempty"`
}

// generateReply is a reply in one piece, or a piece of a stream.
type generateReply struct {
	Candidates     []*candidate    `json:"candidates"`
	PromptFeedback *promptFeedback `json:"promptFeedback"`
	UsageMetadata  usageMetadata   `json:"usageMetadata"`
}

type candidate struct {
	Index        wire.Int `json:"index"`
	Content      content  `json:"content"`
	FinishReason string   `json:"finishReason"`
}

// promptFeedback says why a prompt was blocked.
type promptFeedback struct {
	BlockReason        string `json:"blockReason"`
	BlockReasonMessage string `json:"blockReasonMessage"`
}

type usageMetadata struct {
	PromptTokenCount        wire.Int `json:"promptTokenCount"`
	ToolUsePromptTokenCount wire.Int `json:"toolUsePromptTokenCount"`
	CachedContentTokenCount wire.Int `json:"cachedContentTokenCount"`
	CandidatesTokenCount    wire.Int `json:"candidatesTokenCount"`
	ThoughtsTokenCount      wire.Int `json:"thoughtsTokenCount"`
}
